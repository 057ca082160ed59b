// The derived tables of `moment-formats`: results of pairs over seeds, and memory.
#include <cmath>

#include "experiments/core/frame.h"
#include "experiments/moment_formats/moment_formats.h"
#include "numsim/moments/moment_store.h"

namespace numsim::experiments::moment_formats {
namespace {

Row PairRow(const Frame& pair, const Frame& flushed, const OutcomeTable& losses) {
  const Estimate loss = MeanOf(pair.OverSeeds("valid_loss"));
  const MomentPair formats{pair.Text("m"), pair.Text("v")};
  const Estimate gap = GapOf(losses, formats.Text(), kBaseline.Text());
  SeedValues v_flushed;
  for (const Frame& seed : flushed.Where("m", formats.m).Where("v", formats.v).By({"seed"})) {
    v_flushed[seed.Text("seed")] = seed.Mean("v_flushed");
  }
  return {pair.Text("m"),
          pair.Text("v"),
          pair.Size(),
          pair.Size() - pair.Where("status", "finished").Size(),
          loss.value,
          loss.low,
          loss.high,
          gap.value,
          gap.low,
          gap.high,
          v_flushed.empty() ? std::nan("") : MeanOf(v_flushed).value,
          pair.Number("m_bytes") + pair.Number("v_bytes")};
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
                            m,
                            v,
                            master_bytes,
                            devices,
                            bytes * billions,
                            1 - bytes / fp32});
    }
  }
}

}  // namespace

void Derive(const Settings& settings, Tables& tables) {
  const Frame flushed = tables.at(std::string(kFlushedTable));
  const OutcomeTable losses = Losses(tables);
  const double billions = settings.GetDouble("billions", 1e-6, 1e6);
  for (const Frame& pair : Frame(tables.at(std::string(kFinalTable))).By({"m", "v"})) {
    tables.at(std::string(kPairsTable)).rows.push_back(PairRow(pair, flushed, losses));
    const MomentPair formats{pair.Text("m"), pair.Text("v")};
    AddMemory(formats, billions, tables.at(std::string(kMemoryTable)));
  }
}

}  // namespace numsim::experiments::moment_formats
