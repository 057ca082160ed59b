// The derived tables of `moment-formats`: results of pairs over seeds, and memory.
#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/shared/training.h"
#include "numsim/base/error.h"
#include "numsim/moments/moment_store.h"

namespace numsim::experiments::moment_formats {
namespace {

// The results of one pair with one seed.
struct Outcome {
  double start = 0, loss = 0, bytes = 0, v_flushed = 0;
  bool diverged = false;
};
using Seeds = std::map<std::string, Outcome>;

struct Pair {
  MomentPair pair;
  Seeds seeds;
};

// Returns the pairs with their results, in the order of the table.
std::vector<Pair> PairsIn(const Table& table) {
  std::vector<Pair> pairs;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const MomentPair pair{table.Text(r, "m"), table.Text(r, "v")};
    const auto same = [&](const Pair& p) { return p.pair == pair; };
    auto found = std::find_if(pairs.begin(), pairs.end(), same);
    if (found == pairs.end()) found = pairs.insert(pairs.end(), Pair{pair, {}});
    Outcome& outcome = found->seeds[table.Text(r, "seed")];
    outcome.start = table.Number(r, "start_loss");
    outcome.loss = table.Number(r, "valid_loss");
    outcome.bytes = table.Number(r, "m_bytes") + table.Number(r, "v_bytes");
    outcome.diverged = table.Text(r, "status") != "finished";
  }
  return pairs;
}

void AddFlushed(const Table& table, std::vector<Pair>& pairs) {
  for (Pair& p : pairs) {
    std::map<std::string, std::pair<double, double>> sums;  // by seed: sum, count
    for (size_t r = 0; r < table.rows.size(); ++r) {
      if (p.pair != MomentPair{table.Text(r, "m"), table.Text(r, "v")}) continue;
      auto& [sum, count] = sums[table.Text(r, "seed")];
      sum += table.Number(r, "v_flushed");
      count += 1;
    }
    for (auto& [seed, outcome] : p.seeds) {
      const auto& [sum, count] = sums[seed];
      outcome.v_flushed = count > 0 ? sum / count : std::nan("");
    }
  }
}

// Returns value(outcome) for each seed.
template <typename Value>
SeedValues ValuesOf(const Seeds& seeds, const Value& value) {
  SeedValues values;
  for (const auto& [seed, outcome] : seeds) values[seed] = value(outcome);
  return values;
}

// Returns the verdict of a pair from its gap as a share of what fp32 gained. If fp32 gained
// nothing, there is nothing to compare with. The gap of a pair that diverged is infinite.
std::string VerdictOf(double share, double gained) {
  if (!(gained > 0)) return std::string(kNoVerdict);
  if (!(share <= kFails)) return "fails";
  return share <= kMatches ? "matches" : "close";
}

std::vector<std::string> PairRow(const Pair& p, const Seeds& baseline) {
  const auto valid_loss = [](const Outcome& o) { return o.loss; };
  const SeedValues losses = ValuesOf(p.seeds, valid_loss);
  const Estimate loss = OverSeeds(losses);
  const Estimate gap = GapOverSeeds(losses, ValuesOf(baseline, valid_loss));
  const Estimate gained =
      OverSeeds(ValuesOf(baseline, [](const Outcome& o) { return o.start - o.loss; }));
  const Estimate flushed =
      OverSeeds(ValuesOf(p.seeds, [](const Outcome& o) { return o.v_flushed; }));
  const size_t diverged = static_cast<size_t>(std::count_if(
      p.seeds.begin(), p.seeds.end(), [](const auto& seed) { return seed.second.diverged; }));
  const double share = gap.value / gained.value;
  return {p.pair.m,
          p.pair.v,
          FormatCell(p.seeds.size()),
          FormatCell(diverged),
          FormatCell(loss.value),
          FormatCell(loss.low),
          FormatCell(loss.high),
          FormatCell(gap.value),
          FormatCell(gap.low),
          FormatCell(gap.high),
          FormatCell(share),
          VerdictOf(share, gained.value),
          FormatCell(flushed.value),
          FormatCell(p.seeds.begin()->second.bytes)};
}

// Returns the bytes per parameter of a large tensor, from the bytes that one more block takes, so
// that data stored once per tensor do not count.
double BytesOf(const std::string& storage) {
  const MomentFormat format = ParseMomentFormat(storage);
  const size_t block = format.HasBlocks() ? format.block : 2;  // a byte holds two 4-bit codes
  return (MomentBytes(format, 2 * block) - MomentBytes(format, block)) / static_cast<double>(block);
}

constexpr double kWeightBytes = 4;  // weights and gradients in bf16
constexpr double kMasterFp32 = 4, kMasterFp16 = 2;

void AddMemory(const MomentPair& pair, double billions, Table& table) {
  const double m = BytesOf(pair.m), v = BytesOf(pair.v);
  for (const auto& [master, master_bytes] :
       {std::pair{"fp32", kMasterFp32}, std::pair{"fp16", kMasterFp16}}) {
    for (const int devices : {1, 2, 4, 8}) {
      const double bytes = kWeightBytes + (m + v + master_bytes) / devices;
      const double fp32 = kWeightBytes + (4 + 4 + kMasterFp32) / devices;
      table.rows.push_back({pair.m,
                            pair.v,
                            master,
                            FormatCell(m),
                            FormatCell(v),
                            FormatCell(master_bytes),
                            FormatCell(devices),
                            FormatCell(bytes * billions),
                            FormatCell(1 - bytes / fp32)});
    }
  }
}

}  // namespace

void Derive(const Settings& settings, Tables& tables) {
  std::vector<Pair> pairs = PairsIn(tables.at(std::string(kFinalTable)));
  AddFlushed(tables.at(std::string(kFlushedTable)), pairs);
  Table& by_pair = tables.at(std::string(kPairsTable));
  Table& memory = tables.at(std::string(kMemoryTable));
  const auto baseline =
      std::find_if(pairs.begin(), pairs.end(), [](const Pair& p) { return p.pair == kBaseline; });
  NUMSIM_CHECK(baseline != pairs.end(), "no {}", kBaseline.Text());
  const double billions = settings.GetDouble("billions", 1e-6, 1e6);
  for (const Pair& p : pairs) {
    by_pair.rows.push_back(PairRow(p, baseline->seeds));
    AddMemory(p.pair, billions, memory);
  }
}

}  // namespace numsim::experiments::moment_formats
