#include "experiments/runner/trial_context.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>
#include <vector>

namespace numsim::experiments {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kCheckpointExtension = ".safetensors";
constexpr std::string_view kFork = "fork-";

// Removes the checkpoints of a folder whose names `is_old` accepts.
void RemoveNamed(const fs::path& folder, const std::function<bool(std::string_view)>& is_old) {
  std::vector<fs::path> old;
  std::error_code status;
  fs::directory_iterator entry(folder, status);
  for (; !status && entry != fs::directory_iterator(); entry.increment(status)) {
    if (entry->path().extension() != kCheckpointExtension) continue;
    if (is_old(entry->path().filename().string())) old.push_back(entry->path());
  }
  for (const fs::path& path : old) fs::remove(path, status);
}

}  // namespace

fs::path CheckpointOf(const TrialContext& context, std::string_view training) {
  return context.folder / fmt::format("{}-{}{}", context.trial, training, kCheckpointExtension);
}

fs::path ForkFile(const TrialContext& context, std::string_view baseline, uint64_t steps) {
  const std::string digest = Sha256OfText(fmt::format("{} {}", steps, baseline));
  return context.folder / fmt::format("{}{}{}", kFork, digest.substr(0, 16), kCheckpointExtension);
}

void RemoveForkFiles(const fs::path& folder) {
  RemoveNamed(folder, [](std::string_view name) { return name.starts_with(kFork); });
}

void RemoveCheckpoints(const fs::path& folder, const std::function<bool(size_t)>& is_old) {
  RemoveNamed(folder, [&](std::string_view name) {
    size_t trial = 0;
    const auto [end, parsed] = std::from_chars(name.data(), name.data() + name.size(), trial);
    return parsed == std::errc() && *end == '-' && is_old(trial);
  });
}

}  // namespace numsim::experiments
