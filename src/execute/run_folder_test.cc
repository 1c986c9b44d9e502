#include "execute/run_folder.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "execute/dead_nodes.h"

namespace matins {
namespace {

TEST(NodeFolder, NodesThatStartAtOneInstantDoNotTakeEachOthersFolders) {
  std::string parent = "/tmp/mtXXXXXX";
  ASSERT_NE(mkdtemp(parent.data()), nullptr);
  std::atomic<int> failed{0};
  std::vector<std::thread> nodes;
  for (int node = 0; node < 8; ++node) {
    nodes.emplace_back([&] {
      for (int start = 0; start < 40; ++start) {
        DeadNodes(parent).Look(absl::ZeroDuration());
        const auto folder = NodeFolder::Open(parent);
        failed += !folder.ok() || !(*folder)->MakeRun(start, std::nullopt).ok();
      }
    });
  }
  for (std::thread& node : nodes) node.join();
  EXPECT_EQ(failed, 0);
  std::filesystem::remove_all(parent);
}

}  // namespace
}  // namespace matins
