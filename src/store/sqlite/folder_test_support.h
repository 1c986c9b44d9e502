// A test with a folder of its own, which goes with it.
#ifndef MATINS_STORE_SQLITE_FOLDER_TEST_SUPPORT_H_
#define MATINS_STORE_SQLITE_FOLDER_TEST_SUPPORT_H_

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"

namespace matins::sqlite {

class FolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = (std::filesystem::temp_directory_path() / "matins-XXXXXX").string();
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_;
};

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_FOLDER_TEST_SUPPORT_H_
