#include "numsim/models/model.h"

#include "numsim/base/error.h"
#include "numsim/models/internal/model_kinds.h"

namespace numsim {

const ModelKindRow& RowOf(ModelKind model) {
  switch (model) {
#define NUMSIM_MODEL_KIND(kind, name) \
  case ModelKind::k##kind:            \
    return kind##Row();
#include "numsim/models/model_kinds.inc"
#undef NUMSIM_MODEL_KIND
  }
  NUMSIM_CHECK(false, "model kind {}", static_cast<int>(model));
  return LlamaRow();
}

void FitModelToData(ModelConfig& config, const DataShape& data) {
  const ModelKindRow& row = RowOf(config.kind);
  if (row.fit(config, data)) return;
  throw KeyError::Format(
      "data.kind", "a model of kind '{}' needs {}", ToString(config.kind), row.data);
}

template <>
std::unique_ptr<Model<float>> MakeModel<float>(const ModelConfig& config,
                                               const LinearPrecision& precision,
                                               uint64_t seed,
                                               InitialValues initial) {
  CheckModelConfig(config);
  return RowOf(config.kind).make_float(config, WithoutHighLast(precision, config), seed, initial);
}

template <>
std::unique_ptr<Model<double>> MakeModel<double>(const ModelConfig& config,
                                                 const LinearPrecision& precision,
                                                 uint64_t seed,
                                                 InitialValues initial) {
  CheckModelConfig(config);
  return RowOf(config.kind).make_double(config, WithoutHighLast(precision, config), seed, initial);
}

}  // namespace numsim
