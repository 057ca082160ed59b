#include "numsim/models/model.h"

#include "numsim/models/internal/model_kinds.h"

namespace numsim {

template <typename T>
std::unique_ptr<Model<T>> MakeModel(const ModelConfig& config,
                                    const LinearPrecision& precision,
                                    uint64_t seed,
                                    InitialValues initial) {
  switch (config.kind) {
    case ModelKind::kLlama:
    case ModelKind::kGpt:
      return MakeLanguageModel<T>(config, precision, seed, initial);
    case ModelKind::kVit:
      return MakeVisionModel<T>(config, precision, seed, initial);
    case ModelKind::kClip:
      return MakeClipModel<T>(config, precision, seed, initial);
    case ModelKind::kMlp:
      return MakeStudentModel<T>(config, precision, seed, initial);
  }
  NUMSIM_CHECK(false, "model kind {}", static_cast<int>(config.kind));
  return nullptr;
}

template std::unique_ptr<Model<float>> MakeModel<float>(const ModelConfig&,
                                                        const LinearPrecision&,
                                                        uint64_t,
                                                        InitialValues);
template std::unique_ptr<Model<double>> MakeModel<double>(const ModelConfig&,
                                                          const LinearPrecision&,
                                                          uint64_t,
                                                          InitialValues);

}  // namespace numsim
