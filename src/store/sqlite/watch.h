// How who waits hears that another process has written: SQLite itself tells nobody. The kernel does
// (inotify on the -wal file, into which each commit goes); the reading of PRAGMA data_version says
// whether it was a commit. Where there is no inotify left to have, that is read by a poll instead.
#ifndef MATINS_STORE_SQLITE_WATCH_H_
#define MATINS_STORE_SQLITE_WATCH_H_

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/event_fd.h"

namespace matins::sqlite {

// How often those are looked at who write all the time, and all where no write is told of.
inline constexpr absl::Duration kWritesPoll = absl::Milliseconds(25);

// When to look for a commit. Frames are written first and a commit is seen only when they are on
// the disk, of which nobody tells: after each word of a write one looks again, at first soon, then
// when half as much time again, and later as much time again has passed. A commit that was synced
// for a second is seen a second late at most. Pure; instants are of the boot clock.
class CommitLooks {
 public:
  // One look at `now`: `touched`, the file was written since the one before; `changed`, there was a
  // commit.
  void Looked(absl::Duration now, bool touched, bool changed);
  // The next look is due then; infinite where the file's next write will tell. No
  // sooner than kWritesPoll after a commit.
  absl::Duration Next(absl::Duration now) const;
  // Whether a write tells sooner.
  bool Listens(absl::Duration now) const;

 private:
  std::optional<absl::Duration> since_;  // a write that no commit accounts for
  absl::Duration not_before_ = absl::ZeroDuration();
};

// Waits for a ring, or for a write of `file`. Ring may be called by any thread, the rest by one.
class WriteWatch {
 public:
  explicit WriteWatch(std::string file);
  ~WriteWatch();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

  // What could not be had before is tried again. A write before it is not told of.
  void Listen();
  // Whether the next write will be told of, and a ring.
  bool listening() const { return watch_ >= 0 && bell_.ok(); }
  // Whether the file was written since the last call.
  bool TakeTouched();
  // Until a ring, which it takes, or `at_most`; where it `listens`, until a write too.
  void Wait(absl::Duration at_most, bool listens);
  void Ring() { bell_.Ring(); }

 private:
  const std::string file_;
  EventFd bell_;
  const int inotify_;  // -1: there is none to have
  int watch_ = -1;
};

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_WATCH_H_
