#include "experiments/runner/trial_context.h"

#include <fmt/format.h>

#include <charconv>
#include <system_error>
#include <vector>

namespace numsim::experiments {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kExtension = ".safetensors";

}  // namespace

fs::path CheckpointOf(const TrialContext& context, std::string_view training) {
  return context.folder / fmt::format("{}-{}{}", context.trial, training, kExtension);
}

void RemoveCheckpoints(const fs::path& folder, const std::function<bool(size_t)>& is_old) {
  std::vector<fs::path> old;
  std::error_code status;
  fs::directory_iterator entry(folder, status);
  for (; !status && entry != fs::directory_iterator(); entry.increment(status)) {
    if (entry->path().extension() != kExtension) continue;
    const std::string name = entry->path().filename().string();
    size_t trial = 0;
    const auto [end, parsed] = std::from_chars(name.data(), name.data() + name.size(), trial);
    if (parsed == std::errc() && *end == '-' && is_old(trial)) old.push_back(entry->path());
  }
  for (const fs::path& path : old) fs::remove(path, status);
}

}  // namespace numsim::experiments
