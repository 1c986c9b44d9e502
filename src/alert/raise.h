// What a look at the store comes to: which alerts are raised, in which channels, and which are made
// good. A pure function of what was read, so that any node, at any time, says the same.
#ifndef MATINS_ALERT_RAISE_H_
#define MATINS_ALERT_RAISE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/alerts.h"
#include "store/act_store.h"

namespace matins {

// The topic of what keeps a period from being DONE, whichever it is: one alert a period; of a job
// that does not run each of its periods (misfire skip or latest) one for the job, until a later
// period is DONE.
inline constexpr char kGap[] = "gap";
inline constexpr char kClockTopic[] = "clock";

// Who is told of a job, and how its periods count; read once for each definition.
class JobsTold {
 public:
  explicit JobsTold(const AlertConfig& config) : config_(config) {}
  struct Words {
    std::vector<std::string> channels;
    bool each = true;  // misfire: each
  };
  // Of no job, or of one whose definition cannot be read: the default channels.
  const Words& Of(const std::string& definition);

 private:
  const AlertConfig& config_;
  std::map<std::string, Words> known_;
};

AlertChanges OfTroubles(const AlertFacts& facts, const AlertConfig& config, JobsTold& jobs);

// `definitions` by job; `open`: the alerts that stand. An audit raises what it alarms of; what
// audits raised is made good by the audit of all jobs that does not find it any more.
AlertChanges OfAudit(const AuditRow& audit, const std::map<std::string, std::string>& definitions,
                     absl::Span<const AlertRow> open, const AlertConfig& config, JobsTold& jobs);

}  // namespace matins

#endif  // MATINS_ALERT_RAISE_H_
