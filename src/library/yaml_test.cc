#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "matins/job.h"

namespace {

using ::testing::HasSubstr;

TEST(ToYaml, WritesWhatIsSetAndNothingElse) {
  matins::Job job;
  job.name = "close";
  job.schedule = "0 1 * * *";
  job.misfire = matins::Misfire::kEach;
  job.handler = "close";
  EXPECT_EQ(matins::ToYaml(job),
            "jobs:\n"
            "  - name: \"close\"\n"
            "    schedule: \"0 1 * * *\"\n"
            "    misfire: each\n"
            "    run: { handler: \"close\" }\n");
}

TEST(ToYaml, EscapesWhatAPersonMayWrite) {
  matins::Job job;
  job.shell = "echo \"a\\b\"\n# {x}: \x01";
  EXPECT_THAT(matins::ToYaml(job), HasSubstr("shell: \"echo \\\"a\\\\b\\\"\\x0a# {x}: \\x01\""));
}

}  // namespace
