#include "floor/floor.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"

namespace matins::bench {
namespace {

void SleepUntil(absl::Time instant) {
  const timespec until = absl::ToTimespec(instant);
  while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr) != 0) {
  }
}

double Milliseconds(absl::Duration d) { return absl::ToDoubleMilliseconds(d); }

// `part` of 0.99: the value that 99 of 100 do not exceed. Sorts `values`.
double Percentile(std::vector<double>& values, double part) {
  std::sort(values.begin(), values.end());
  const auto index = static_cast<size_t>(part * static_cast<double>(values.size()));
  return values[std::min(index, values.size() - 1)];
}

template <typename Work>
void OnEachConnection(Floor& floor, int connections, const Work& work) {
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<Connection>> each;
  for (int i = 0; i < connections; ++i) each.push_back(floor.Connect());
  for (auto& connection : each) threads.emplace_back([&work, &connection] { work(*connection); });
  for (std::thread& thread : threads) thread.join();
}

void DrainAlone(Connection& connection, int batch) {
  while (connection.Claim(batch) > 0) connection.Finish();
}

void DrainTogether(Connection& connection, int batch) {
  if (connection.Claim(batch) == 0) return;
  while (connection.FinishAndClaim(batch) > 0) {
  }
}

std::string Drain(Floor& floor, const Options& options) {
  floor.Prepare(options, absl::Now() - absl::Hours(24), absl::Seconds(1));
  absl::Time began, ended;
  {
    // Connected beforehand, so that the drain alone is measured.
    std::atomic<int> ready{0};
    std::atomic<bool> go{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < options.connections; ++i) {
      threads.emplace_back([&] {
        auto connection = floor.Connect();
        ++ready;
        go.wait(false);
        if (options.together) {
          DrainTogether(*connection, options.batch);
        } else {
          DrainAlone(*connection, options.batch);
        }
      });
    }
    while (ready < options.connections) absl::SleepFor(absl::Milliseconds(1));
    began = absl::Now();
    go = true;
    go.notify_all();
    for (std::thread& thread : threads) thread.join();
    ended = absl::Now();
  }
  if (const int64_t done = floor.Done(); done != options.runs) {
    Die(absl::StrCat(done, " runs of ", options.runs, " are done"));
  }
  const double seconds = absl::ToDoubleSeconds(ended - began);
  return absl::StrFormat(R"("seconds":%.4f,"per_second":%.1f)", seconds,
                         static_cast<double>(options.runs) / seconds);
}

// Timer, then one durable claim, then the first instruction.
std::string Latency(Floor& floor, const Options& options) {
  const absl::Duration apart = absl::Seconds(options.seconds) / options.runs;
  const absl::Time first = absl::Now() + absl::Seconds(2);
  floor.Prepare(options, first, apart);
  const auto connection = floor.Connect();
  // Again from now, where preparing took longer than thought.
  const absl::Time begin = std::max(first, absl::Now() + absl::Milliseconds(100));
  std::vector<double> late;
  for (int64_t i = 0; i < options.runs; ++i) {
    const absl::Time due = begin + i * apart;
    SleepUntil(due);
    connection->ClaimRow(i);
    late.push_back(Milliseconds(absl::Now() - due));
  }
  const double p50 = Percentile(late, 0.5);
  return absl::StrFormat(R"("p50_ms":%.3f,"p99_ms":%.3f,"max_ms":%.3f)", p50,
                         Percentile(late, 0.99), late.back());
}

std::string Burst(Floor& floor, const Options& options) {
  floor.Prepare(options, absl::Now() - absl::Seconds(1), absl::ZeroDuration());
  const absl::Time due = absl::Now() + absl::Milliseconds(500);
  std::atomic<int64_t> last_started{0}, last_committed{0};
  const auto raise = [](std::atomic<int64_t>& mark, absl::Duration d) {
    int64_t now = absl::ToInt64Microseconds(d), seen = mark;
    while (seen < now && !mark.compare_exchange_weak(seen, now)) {
    }
  };
  OnEachConnection(floor, options.connections, [&](Connection& connection) {
    SleepUntil(due);
    while (connection.Claim(options.batch) > 0) {
      raise(last_started, absl::Now() - due);
      connection.Finish();
      raise(last_committed, absl::Now() - due);
    }
  });
  if (const int64_t done = floor.Done(); done != options.runs) {
    Die(absl::StrCat(done, " runs of ", options.runs, " are done"));
  }
  return absl::StrFormat(R"("started_ms":%.3f,"committed_ms":%.3f)",
                         static_cast<double>(last_started) / 1000,
                         static_cast<double>(last_committed) / 1000);
}

}  // namespace

void Die(const std::string& what) {
  std::fprintf(stderr, "floor: %s\n", what.c_str());
  std::exit(1);
}

int Main(int argc, char** argv, Floor& floor) {
  Options options;
  CLI::App app("What this machine and store can do at most");
  app.add_option("--store", options.store)->required();
  app.add_option("--measure", options.measure)->check(CLI::IsMember({"drain", "latency", "burst"}));
  app.add_option("--shape", options.shape)->check(CLI::IsMember({"jobs", "periods"}));
  app.add_option("--tables", options.tables)->check(CLI::IsMember({"bare", "matins"}));
  app.add_option("--runs", options.runs)->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch)->check(CLI::PositiveNumber);
  app.add_option("--connections", options.connections)->check(CLI::Range(1, 64));
  app.add_option("--seconds", options.seconds)->check(CLI::PositiveNumber);
  app.add_flag("--together", options.together);
  CLI11_PARSE(app, argc, argv);
  const std::string figures = options.measure == "drain"     ? Drain(floor, options)
                              : options.measure == "latency" ? Latency(floor, options)
                                                             : Burst(floor, options);
  std::printf(R"({"bench":"floor_%s","store":"%s","shape":"%s","tables":"%s","runs":%d,"batch":%d,)"
              R"("connections":%d,"together":%s,%s})"
              "\n",
              options.measure.c_str(), floor.name().c_str(), options.shape.c_str(),
              options.tables.c_str(), static_cast<int>(options.runs), options.batch,
              options.connections, options.together ? "true" : "false", figures.c_str());
  return 0;
}

}  // namespace matins::bench
