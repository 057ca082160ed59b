#include "numsim/analysis/precision_ranking.h"
#include "numsim/io/atomic_file.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {
namespace {

constexpr const char* kTable = "ranking.csv";
constexpr const char* kText = "ranking.txt";

void WriteRanking(const RankRunOptions& options, RankRunResult& result) {
  const std::filesystem::path& out = options.out;
  RemoveFiles(out, {kText, "ranking.pdf", "ranking.svg", "ranking.gp", kTable});
  WriteCsv(out / kTable, RankingTable(result.ranking));
  result.files.emplace_back(kTable);
  for (std::string& file : DrawFigure(RankingFigure(result.ranking, options.bars), out)) {
    result.files.push_back(std::move(file));
  }
  WriteFileAtomically(out / kText, result.text);
  result.files.emplace_back(kText);
}

}  // namespace

RankRunResult RunRanking(const TrainConfig& config, const RankRunOptions& options) {
  Trainer trainer(config, OpenData(config.data));
  RankRunResult result;
  result.from_checkpoint = RestoreIfSaved(options.out, trainer);
  MakeRunDirectory(options.out);  // fails before the expensive work
  result.ranking = RankPrecision(trainer, options.by, options.progress);
  result.text = Describe(result.ranking, options.lines);
  WriteRanking(options, result);
  return result;
}

}  // namespace numsim
