// What both the demo and its story stand on: a folder, a ledger with data, a store with jobs, and
// nodes.
#ifndef MATINS_DEMO_STAGE_H_
#define MATINS_DEMO_STAGE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "demo/demo.h"
#include "demo/jobs_file.h"
#include "demo/processes.h"
#include "demo/sql.h"
#include "ops/session.h"

namespace matins::demo {

// The newest business date whose reconciliation is due by now.
absl::CivilDay NewestDueDay();

class Stage {
 public:
  // Makes the folder and opens ledger and store. `name` keeps several stages of one folder apart.
  static absl::StatusOr<std::unique_ptr<Stage>> Open(const DemoOptions& options,
                                                     const std::string& name);

  // Payments and statements of the days from `first` to `last`, with progress; days that are there
  // are left.
  absl::Status Fill(absl::CivilDay first, absl::CivilDay last);
  absl::Status Apply(JobsFileOptions options);
  absl::Status StartNode();
  absl::Status StopNodes();

  Sql& ledger() { return *ledger_; }
  Session& session() { return *session_; }
  std::vector<Process>& nodes() { return nodes_; }
  const std::string& folder() const { return folder_; }
  const std::string& store_url() const { return store_url_; }
  const std::string& ledger_url() const { return ledger_url_; }
  std::string NodeLog(size_t index) const;
  // The first node's log that has ended, as an error; OK while all live.
  absl::Status AllAlive();

 private:
  Stage() = default;
  std::string folder_, name_, store_url_, ledger_url_;
  std::unique_ptr<Sql> ledger_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<Session> session_;
  std::vector<Process> nodes_;
};

}  // namespace matins::demo

#endif  // MATINS_DEMO_STAGE_H_
