#include "base/history.h"

#include <gtest/gtest.h>

namespace matins {
namespace {

TEST(HistoryLine, EscapesTextAndWritesFencesAsStrings) {
  HistoryEvent event{
      .type = "commit", .result = "ok", .node = "a\"b", .job = "x\ny", .fence = int64_t{1} << 40};
  event.wall = absl::UnixEpoch();
  EXPECT_EQ(HistoryLine(event),
            "{\"type\":\"commit\",\"res\":\"ok\",\"node\":\"a\\\"b\",\"job\":\"x\\u000ay\","
            "\"token\":\"1099511627776\",\"mono\":0.000000,\"wall\":\"1970-01-01T00:00:00Z\"}");
}

}  // namespace
}  // namespace matins
