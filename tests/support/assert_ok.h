// Fatal assertions of absl::Status and absl::StatusOr, which say what the status says.
#ifndef MATINS_TESTS_SUPPORT_ASSERT_OK_H_
#define MATINS_TESTS_SUPPORT_ASSERT_OK_H_

#include <utility>

#include "absl/status/status.h"
#include "base/status.h"
#include "gtest/gtest.h"

#define ASSERT_OK(expr)                                     \
  do {                                                      \
    const absl::Status assert_ok_status = (expr);           \
    ASSERT_TRUE(assert_ok_status.ok()) << assert_ok_status; \
  } while (false)

// ASSERT_OK_AND_ASSIGN(const Claim claim, store.Start(key)); several statements, as
// ASSIGN_OR_RETURN.
#define ASSERT_OK_AND_ASSIGN(lhs, expr) \
  ASSERT_OK_AND_ASSIGN_IMPL(MATINS_CONCAT(assert_statusor_, __LINE__), lhs, expr)
#define ASSERT_OK_AND_ASSIGN_IMPL(var, lhs, expr) \
  auto var = (expr);                              \
  ASSERT_TRUE(var.ok()) << var.status();          \
  lhs = *std::move(var)

#endif  // MATINS_TESTS_SUPPORT_ASSERT_OK_H_
