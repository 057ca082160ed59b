// What a ranking tries, one after another: the operands and tensors that a step quantises.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "numsim/analysis/precision_ranking.h"
#include "numsim/analysis/step_replay.h"

namespace numsim {

// Notes what a pass multiplies and stores.
class PassRecord : public PassObserver<float> {
 public:
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override;
  void Multiplied(std::string_view layer, LinearGemm product) override;

  // Each once, in the order in which they came.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // The operands of the products that layer has computed.
  OperandSet Used(const std::string& layer) const;

 private:
  std::vector<StoredTensor> tensors_;
  std::map<std::string, OperandSet> used_;
};

struct RankingCandidate {
  RankedTensor tensor;      // its names alone
  ReplayPrecision without;  // it in high precision, the rest as configured
  ReplayPrecision alone;    // the rest in high precision
};

struct RankingCandidates {
  ReplayPrecision high;  // all in high precision
  std::vector<RankingCandidate> candidates;
};

// The candidates of a model, layers first, in its order. `record` is of a step as configured.
RankingCandidates MakeRankingCandidates(const TrainConfig& config,
                                        const Model<float>& model,
                                        const PassRecord& record,
                                        RankBy by);

}  // namespace numsim
