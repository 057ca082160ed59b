#include "apps/train_rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include "apps/train_progress.h"
#include "numsim/analysis/precision_ranking.h"

namespace numsim::apps {

int RankTraining(const TrainConfig& config,
                 const std::filesystem::path& out,
                 const RankArguments& arguments) {
  RankRunOptions options;
  options.out = out;
  options.by = ParseRankBy(arguments.by);
  if (arguments.count != 0) options.lines = options.bars = arguments.count;
  RankRunResult result;
  {
    RankProgress progress(isatty(STDERR_FILENO) != 0);
    options.progress = [&progress](size_t done, size_t all) { progress.Show(done, all); };
    result = RunRanking(config, options);
  }
  fmt::print("{}\n{}\nwritten to {}:\n",
             result.text,
             result.from_checkpoint ? "Ranked at the checkpoint."
                                    : "Ranked at the start: there is no checkpoint.",
             out.string());
  for (const std::string& file : result.files) fmt::print("  {}\n", file);
  return 0;
}

}  // namespace numsim::apps
