#include "demo/bodies.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "demo/fence.h"
#include "demo/ledger.h"
#include "demo/reconcile.h"
#include "demo/sql.h"
#include "execute/run_client.h"

namespace matins::demo {
namespace {

constexpr int kMerchantGroups = 10;

absl::StatusOr<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr && *value != '\0') return std::string(value);
  return BadInput(name, "is not set", "this program is started by Matins, which sets it");
}

absl::StatusOr<int64_t> NumberVariable(const char* name) {
  ASSIGN_OR_RETURN(const std::string text, Variable(name));
  int64_t number;
  if (!absl::SimpleAtoi(text, &number))
    return BadInput(name, absl::StrCat("'", text, "' is no number"), "");
  return number;
}

absl::StatusOr<Ownership> Owner() {
  Ownership owner;
  ASSIGN_OR_RETURN(owner.job, Variable("MATINS_JOB"));
  ASSIGN_OR_RETURN(owner.period, Variable("MATINS_PERIOD"));
  ASSIGN_OR_RETURN(owner.fence, NumberVariable("MATINS_FENCE"));
  ASSIGN_OR_RETURN(const int64_t generation, NumberVariable("MATINS_GENERATION"));
  owner.generation = static_cast<int>(generation);
  return owner;
}

absl::StatusOr<absl::CivilDay> BizDate() {
  ASSIGN_OR_RETURN(const std::string text, Variable("MATINS_BIZ_DATE"));
  return ParseDay(text);
}

// "PID GUARD" in FOLDER/FENCE: what the story stops and kills is this very process.
void LeaveNumber(const BodyOptions& options, int64_t fence) {
  if (options.folder.empty()) return;
  std::ofstream file(absl::StrCat(options.folder, "/", fence));
  file << getpid() << ' ' << getppid() << '\n';
}

void Rest(const BodyOptions& options) { absl::SleepFor(absl::Milliseconds(options.pause_ms)); }

absl::Status Recon(Sql& sql, const BodyOptions& options) {
  if (!options.plain_day.empty()) {
    ASSIGN_OR_RETURN(const absl::CivilDay day, ParseDay(options.plain_day));
    return ReconcilePlainly(sql, day);
  }
  ASSIGN_OR_RETURN(const Ownership owner, Owner());
  ASSIGN_OR_RETURN(const absl::CivilDay day, BizDate());
  LeaveNumber(options, owner.fence);
  std::printf("reconciling %s, fence %lld\n", FormatDay(day).c_str(),
              static_cast<long long>(owner.fence));
  int64_t steps = 0;
  const absl::Status status = Reconcile(sql, owner, day, [&](int64_t step) {
    ++steps;
    std::printf("step %lld of %lld\n", static_cast<long long>(step),
                static_cast<long long>(Steps()));
    std::fflush(stdout);
    Rest(options);
  });
  if (absl::IsAborted(status) && !options.folder.empty()) {
    std::ofstream(absl::StrCat(options.folder, "/", owner.fence, ".refused"))
        << status.message() << '\n';
  }
  RETURN_IF_ERROR(status);
  // How much of it was this run's own work: what a drill asks for.
  ASSIGN_OR_RETURN(const std::string socket, Variable("MATINS_SOCKET"));
  return AskNode(socket, {AskKind::kResult, 0, absl::StrCat("{\"steps\": ", steps, "}")}).status();
}

absl::Status CountDifferences(Sql& sql) {
  ASSIGN_OR_RETURN(const absl::CivilDay day, BizDate());
  ASSIGN_OR_RETURN(
      const Answer answer,
      sql.Do(
          "SELECT COUNT(*), COALESCE(SUM(ABS(ledger_amount - channel_amount)), 0) FROM difference "
          "WHERE biz_date = ?",
          {FormatDay(day)}));
  std::printf("{\"differences\": %s, \"amount\": %s}\n", answer.rows[0][0].c_str(),
              answer.rows[0][1].c_str());
  return absl::OkStatus();
}

// One group of merchants for one hour; a group is written whole or not at all, and again just the
// same.
absl::Status BillGroup(Sql& sql, const std::string& hour_start, absl::CivilHour hour, int group) {
  RETURN_IF_ERROR(sql.Begin());
  const auto write = [&]() -> absl::Status {
    RETURN_IF_ERROR(sql.Do("DELETE FROM invoice WHERE hour_start = ? AND merchant_group = ?",
                           {hour_start, group})
                        .status());
    RETURN_IF_ERROR(sql.Do("INSERT INTO invoice (hour_start, merchant_group, payments, amount) "
                           "SELECT CAST(? AS TEXT), CAST(? AS INTEGER), COUNT(*), "
                           "COALESCE(SUM(amount), 0) FROM payment "
                           "WHERE biz_date = ? AND hour = ? AND merchant % 10 = ?",
                           {hour_start, group, FormatDay(absl::CivilDay(hour)), hour.hour(), group})
                        .status());
    return sql.Commit();
  };
  const absl::Status status = write();
  if (!status.ok()) sql.Rollback();
  return status;
}

absl::Status Bill(Sql& sql, const BodyOptions& options) {
  ASSIGN_OR_RETURN(const std::string start_text, Variable("MATINS_WINDOW_START"));
  ASSIGN_OR_RETURN(const absl::Time start, ParseInstant(start_text));
  absl::TimeZone zone;
  absl::LoadTimeZone(kZone, &zone);
  ASSIGN_OR_RETURN(const std::string socket, Variable("MATINS_SOCKET"));
  // Where an earlier attempt stopped: groups up to the checkpoint are billed.
  int64_t done = 0;
  if (const char* text = std::getenv("MATINS_CHECKPOINT_NUMBER"); text != nullptr) {
    (void)absl::SimpleAtoi(text, &done);
  }
  for (int64_t group = done; group < kMerchantGroups; ++group) {
    RETURN_IF_ERROR(
        BillGroup(sql, start_text, absl::ToCivilHour(start, zone), static_cast<int>(group)));
    RETURN_IF_ERROR(AskNode(socket, {AskKind::kCheckpoint, group + 1,
                                     absl::StrCat("{\"groups\": ", group + 1, "}")})
                        .status());
    Rest(options);
  }
  return absl::OkStatus();
}

absl::Status Report(Sql& sql) {
  ASSIGN_OR_RETURN(const absl::CivilDay day, BizDate());
  return sql
      .Do("INSERT INTO report (biz_date, days, differences, open_amount) "
          "SELECT CAST(? AS TEXT), COUNT(*), COALESCE(SUM(differences), 0), COALESCE(SUM(amount), "
          "0) FROM day_summary "
          "WHERE 1 = 1 ON CONFLICT (biz_date) DO UPDATE SET days = excluded.days, differences = "
          "excluded.differences, "
          "open_amount = excluded.open_amount",
          {FormatDay(day)})
      .status();
}

absl::Status WarmCache(Sql& sql) {
  ASSIGN_OR_RETURN(const Answer answer, sql.Do("SELECT COUNT(*) FROM day_summary"));
  std::printf("warm: %s days summed up\n", answer.rows[0][0].c_str());
  return absl::OkStatus();
}

// What the payment system and the channel would bring: the day's payments and its statement.
absl::Status Deliver(Sql& sql) {
  ASSIGN_OR_RETURN(const absl::CivilDay day, BizDate());
  ASSIGN_OR_RETURN(const bool there, HasDay(sql, day));
  if (there) return absl::OkStatus();
  return FillDay(sql, day).status();
}

}  // namespace

absl::Status RunBody(absl::string_view name, BodyOptions options) {
  const auto from_env = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::string(value == nullptr ? "" : value);
  };
  if (options.ledger.empty()) options.ledger = from_env("LEDGER");
  if (options.folder.empty()) options.folder = from_env("DEMO_FOLDER");
  if (options.pause_ms == 0) (void)absl::SimpleAtoi(from_env("DEMO_PAUSE_MS"), &options.pause_ms);
  ASSIGN_OR_RETURN(const std::unique_ptr<Sql> sql, OpenSql(options.ledger));
  if (name == "recon") return Recon(*sql, options);
  if (name == "count") return CountDifferences(*sql);
  if (name == "billing") return Bill(*sql, options);
  if (name == "report") return Report(*sql);
  if (name == "warm-cache") return WarmCache(*sql);
  if (name == "deliver") return Deliver(*sql);
  return BadInput("demo body", absl::StrCat("'", name, "' is not one"),
                  "recon, count, billing, report, warm-cache or deliver");
}

}  // namespace matins::demo
