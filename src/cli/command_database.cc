// matins db migrate|check|backup|restore, clock accept, epoch bump
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/commands.h"
#include "nlohmann/json.hpp"
#include "store/database.h"

namespace matins {
namespace {

absl::Status Migrate(const Shell& shell) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, shell.OpenDatabase());
  int before = 0;  // a store that is not there yet has none
  if (const auto check = database->Check(); check.ok()) before = check->version;
  RETURN_IF_ERROR(database->Migrate());
  ASSIGN_OR_RETURN(const SchemaCheck after, database->Check());
  shell.Tell({{"schema", after.version}, {"was", before}},
             before == after.version ? absl::StrCat("schema ", after.version, ": nothing to do")
                                     : absl::StrCat("schema ", before, " -> ", after.version));
  return absl::OkStatus();
}

absl::Status Check(Shell& shell) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, shell.OpenDatabase());
  ASSIGN_OR_RETURN(SchemaCheck check, database->Check());
  if (check.problems.empty() && check.version != check.wanted) {
    check.problems.push_back(absl::StrCat(
        "schema ", check.version, ", wanted ", check.wanted,
        check.version < check.wanted ? "; run `matins db migrate`" : "; use a newer matins"));
  }
  if (shell.json()) {
    shell.PrintJson({{"store", database->Describe()},
                     {"schema", check.version},
                     {"wanted", check.wanted},
                     {"problems", check.problems}});
  } else {
    shell.Print(absl::StrCat(database->Describe(), ": schema ", check.version,
                             " (this program's: ", check.wanted, ")\n"));
    for (const std::string& problem : check.problems)
      shell.Print(absl::StrCat("problem: ", problem, "\n"));
    if (check.problems.empty() && check.version == check.wanted)
      shell.Print("all is as it must be\n");
  }
  if (!check.problems.empty() || check.version != check.wanted) shell.SetExit(kExitFailed);
  return absl::OkStatus();
}

void AddBackupAndRestore(CLI::App& db, Shell& shell) {
  CLI::App& backup =
      *db.add_subcommand("backup", "a consistent copy of a SQLite store, also while nodes work");
  auto to = std::make_shared<std::string>();
  backup.add_option("FILE", *to)->required();
  shell.AddStoreOption(backup);
  shell.AddOutputOption(backup);
  shell.Does(backup, [&shell, to]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, shell.OpenDatabase());
    RETURN_IF_ERROR(database->Backup(*to));
    shell.Tell({{"copy", *to}}, absl::StrCat(database->Describe(), " copied to ", *to));
    return absl::OkStatus();
  });

  CLI::App& restore =
      *db.add_subcommand("restore", "put a copy back, where no node is alive; raises the epoch");
  auto from = std::make_shared<std::string>();
  restore.add_option("FILE", *from)->required();
  shell.AddStoreOption(restore);
  shell.AddOutputOption(restore);
  shell.Does(restore, [&shell, from]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, shell.OpenDatabase());
    RETURN_IF_ERROR(database->Restore(*from));
    shell.Tell({{"restored_from", *from}},
               absl::StrCat(database->Describe(), " restored from ", *from, ", epoch raised"));
    return absl::OkStatus();
  });
}

void AddClockAndEpoch(CLI::App& app, Shell& shell) {
  CLI::App& clock = *app.add_subcommand("clock", "the store's clock");
  clock.require_subcommand(1);
  CLI::App& accept = *clock.add_subcommand(
      "accept", "take the store's clock as it is now, after a step froze planning");
  auto reason = std::make_shared<std::string>();
  shell.AddReasonOption(accept, *reason);
  shell.AddStoreOption(accept);
  shell.AddOutputOption(accept);
  shell.Does(accept, [&shell, reason] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      RETURN_IF_ERROR(session.acts().AcceptClock(session.MakeAct(*reason)));
      shell.Tell({{"accepted", true}}, "the store's clock is taken as it is");
      return absl::OkStatus();
    });
  });

  CLI::App& epoch = *app.add_subcommand("epoch", "the high bits of every fence");
  epoch.require_subcommand(1);
  CLI::App& bump = *epoch.add_subcommand(
      "bump", "raise it: part of every failover to a replica and every restore");
  auto why = std::make_shared<std::string>();
  shell.AddReasonOption(bump, *why);
  shell.AddStoreOption(bump);
  shell.AddOutputOption(bump);
  shell.Does(bump, [&shell, why] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const int64_t now, session.acts().BumpEpoch(session.MakeAct(*why)));
      shell.Tell({{"epoch", now}}, absl::StrCat("epoch ", now));
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddDatabaseCommands(CLI::App& app, Shell& shell) {
  CLI::App& db = *app.add_subcommand("db", "the store's schema: migrate, check, backup, restore");
  db.require_subcommand(1);
  CLI::App& migrate = *db.add_subcommand(
      "migrate", "create the schema, or bring an older one up to this program's");
  shell.AddStoreOption(migrate);
  shell.AddOutputOption(migrate);
  shell.Does(migrate, [&shell] { return Migrate(shell); });
  CLI::App& check =
      *db.add_subcommand("check", "look the schema, its indexes and the server's settings over");
  shell.AddStoreOption(check);
  shell.AddOutputOption(check);
  shell.Does(check, [&shell] { return Check(shell); });
  AddBackupAndRestore(db, shell);
  AddClockAndEpoch(app, shell);
}

}  // namespace matins
