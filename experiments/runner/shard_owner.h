// Says which process runs a shard in a result directory, so that no two processes write one trial.
//
// The file journal/SHARD-of-COUNT.owner exists as long as the process runs the shard. It is created
// exclusively, which every file system does, and needs no lock. It names the host, the boot of the
// host, the process and its start. A file of a process of this host that has ended is stale and is
// replaced. numsim cannot see whether a process of another host has ended, nor which process an
// incomplete file named: such a file stays until a user takes the shard over.
#pragma once

#include <filesystem>
#include <string>

namespace numsim::experiments {

class ShardOwner {
 public:
  // Takes ownership of the shard in `directory`, whose journal folder exists. With `take_over`, also
  // from a process of another host, or an unknown one. Throws Error naming the owner if a process owns
  // this shard, or one of another count that shares trials with it, and may still be running.
  ShardOwner(const std::filesystem::path& directory, int index, int count, bool take_over);
  // Releases it.
  ~ShardOwner();
  ShardOwner(const ShardOwner&) = delete;
  ShardOwner& operator=(const ShardOwner&) = delete;

 private:
  std::filesystem::path path_;
};

// Releases every shard of a directory that this process owns, for an end without destructors.
void ReleaseShardsOfThisProcess(const std::filesystem::path& directory);

// Returns whether shards I/N and J/M may have trials in common: shards of different counts are cut by
// costs, each in its way.
bool SharesTrials(int index, int count, int other_index, int other_count);

}  // namespace numsim::experiments
