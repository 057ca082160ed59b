// The candidates of a ranking: the operands and tensors that a step quantises.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "numsim/analysis/precision_ranking.h"
#include "numsim/analysis/step_replay.h"

namespace numsim {

// Records the GEMMs and the stored tensors of a pass.
class PassRecord : public PassObserver<float> {
 public:
  void Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) override;
  void Multiplied(std::string_view layer, LinearGemm product) override;

  // The distinct tensors, in the order in which they were first observed.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // Returns the operands of the GEMMs that the layer has computed.
  OperandSet Used(const std::string& layer) const;

 private:
  std::vector<StoredTensor> tensors_;
  std::map<std::string, OperandSet> used_;
};

struct RankingCandidate {
  RankedTensor tensor;      // only names, format and override are set
  ReplayPrecision without;  // this candidate in high precision, the rest as configured
  ReplayPrecision alone;    // this candidate as configured, the rest in high precision
};

struct RankingCandidates {
  ReplayPrecision high;  // everything in high precision
  std::vector<RankingCandidate> candidates;
};

// Returns the candidates of a model in the model's order, linear layers before stored tensors.
// `record` must be from a step as configured.
RankingCandidates MakeRankingCandidates(const TrainConfig& config,
                                        const Model<float>& model,
                                        const PassRecord& record,
                                        RankBy by);

}  // namespace numsim
