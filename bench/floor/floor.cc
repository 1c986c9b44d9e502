#include "bench/floor/floor.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace matins::bench {
namespace {

using Connections = std::vector<std::unique_ptr<Connection>>;

void SleepUntil(absl::Time instant) {
  const timespec until = absl::ToTimespec(instant);
  while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

Setting SettingOf(const Options& options) {
  return {.store = options.Text("store"),
          .shape = options.Text("shape"),
          .bare = options.Text("tables") == "bare",
          .runs = options.Int("runs")};
}

Connections Connect(Floor& floor, const Options& options) {
  Connections all;
  for (int64_t i = 0; i < options.Int("connections"); ++i) all.push_back(floor.Connect());
  return all;
}

// `work` on each connection at once, from `at` on; answers when the last one has ended.
template <typename Work>
absl::Duration OnEach(const Connections& connections, absl::Time at, const Work& work) {
  std::vector<std::thread> threads;
  for (const auto& connection : connections) {
    threads.emplace_back([&] {
      SleepUntil(at);
      work(*connection);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return absl::Now() - at;
}

void DrainTogether(Connection& connection, int batch) {
  if (connection.Claim(batch) == 0) return;
  while (connection.FinishAndClaim(batch) > 0) {
  }
}

void DrainAlone(Connection& connection, int batch) {
  while (connection.Claim(batch) > 0) connection.Finish();
}

void DieUnlessDone(Floor& floor, const Options& options) {
  const int64_t done = floor.Done();
  if (done != options.Int("runs")) {
    Die(absl::StrCat(done, " runs of ", options.Int("runs"), " are done"));
  }
}

void Drain(Floor& floor, const Options& options, Line& line) {
  const bool together = options.Flag("together");
  const int batch = static_cast<int>(options.Int("batch"));
  floor.Prepare(SettingOf(options), absl::Now() - absl::Hours(24), absl::Seconds(1));
  const Connections connections = Connect(floor, options);
  const double own = OwnCpuSeconds(), store = StoreCpuSeconds();
  const absl::Duration took =
      OnEach(connections, absl::Now() + absl::Milliseconds(20), [&](Connection& connection) {
        together ? DrainTogether(connection, batch) : DrainAlone(connection, batch);
      });
  const auto runs = static_cast<double>(options.Int("runs"));
  const double own_us = (OwnCpuSeconds() - own) * 1e6, store_us = (StoreCpuSeconds() - store) * 1e6;
  DieUnlessDone(floor, options);
  line.Add("seconds", absl::ToDoubleSeconds(took))
      .Add("per_second", runs / absl::ToDoubleSeconds(took))
      .Add("node_cpu_us_per_run", own_us / runs)
      .Add("store_cpu_us_per_run", store_us / runs);
}

// Timer, then one durable claim, then the first instruction.
void Latency(Floor& floor, const Options& options, Line& line) {
  const int64_t runs = options.Int("runs");
  const absl::Duration apart = absl::Seconds(options.Int("seconds")) / runs;
  floor.Prepare(SettingOf(options), absl::Now(), apart);
  const Connections connections = Connect(floor, options);
  const absl::Time begin = absl::Now() + absl::Milliseconds(100);
  std::vector<absl::Duration> late;
  for (int64_t i = 0; i < runs; ++i) {
    const absl::Time due = begin + i * apart;
    SleepUntil(due);
    connections[0]->ClaimRow(i);
    late.push_back(absl::Now() - due);
  }
  line.AddLatencies("", late);
}

void RaiseTo(std::atomic<int64_t>& mark, absl::Duration value) {
  const int64_t us = absl::ToInt64Microseconds(value);
  int64_t seen = mark;
  while (seen < us && !mark.compare_exchange_weak(seen, us)) {
  }
}

void Burst(Floor& floor, const Options& options, Line& line) {
  const int batch = static_cast<int>(options.Int("batch"));
  floor.Prepare(SettingOf(options), absl::Now() - absl::Seconds(1), absl::ZeroDuration());
  const Connections connections = Connect(floor, options);
  const absl::Time due = absl::Now() + absl::Milliseconds(200);
  std::atomic<int64_t> started{0}, committed{0};
  OnEach(connections, due, [&](Connection& connection) {
    while (connection.Claim(batch) > 0) {
      RaiseTo(started, absl::Now() - due);
      connection.Finish();
      RaiseTo(committed, absl::Now() - due);
    }
  });
  DieUnlessDone(floor, options);
  line.Add("started_ms", static_cast<double>(started) / 1000)
      .Add("committed_ms", static_cast<double>(committed) / 1000);
}

}  // namespace

int Main(int argc, char** argv, Floor& floor) {
  const Options options(argc, argv,
                        {{"measure", "drain"},
                         {"shape", "jobs"},
                         {"tables", "bare"},
                         {"runs", "20000"},
                         {"batch", "1000"},
                         {"connections", "1"},
                         {"together", "false"},
                         {"seconds", "10"}});
  const std::string& measure = options.Text("measure");
  Line line(absl::StrCat("floor_", measure), options);
  line.Add("shape", options.Text("shape")).Add("tables", options.Text("tables"));
  for (const char* name : {"runs", "batch", "connections"}) line.Add(name, options.Int(name));
  line.Add("together", options.Flag("together"));
  if (measure == "drain") {
    Drain(floor, options, line);
  } else if (measure == "latency") {
    Latency(floor, options, line);
  } else if (measure == "burst") {
    Burst(floor, options, line);
  } else {
    Die(absl::StrCat("--measure ", measure, ": write drain, latency or burst"));
  }
  line.Print();
  return 0;
}

}  // namespace matins::bench
