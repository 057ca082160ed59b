// The kinds of models as data.
#pragma once

#include <memory>

#include "numsim/models/model.h"

namespace numsim {

template <typename T>
using MakeModelOf = std::unique_ptr<Model<T>>(const ModelConfig& config,
                                              const LinearPrecision& precision,
                                              uint64_t seed,
                                              InitialValues initial);

template <class M, typename T>
std::unique_ptr<Model<T>> MakeModelOfClass(const ModelConfig& config,
                                           const LinearPrecision& precision,
                                           uint64_t seed,
                                           InitialValues initial) {
  return std::make_unique<M>(config, precision, seed, initial);
}

// A kind of model.
struct ModelKindRow {
  ModelTraits traits = {};
  std::string_view data = {};  // kinds of data that it needs, for messages
  // Checks the fields of this kind, after those of all kinds: see CheckModelConfig.
  void (*check)(const ModelConfig& config) = nullptr;
  // Sets what follows from the data. Returns false if the data do not have it: see FitModelToData.
  bool (*fit)(ModelConfig& config, const DataShape& data) = nullptr;
  MakeModelOf<float>* make_float = nullptr;
  MakeModelOf<double>* make_double = nullptr;
};

#define NUMSIM_MODEL_KIND(kind, name) const ModelKindRow& kind##Row();
#include "numsim/models/model_kinds.inc"
#undef NUMSIM_MODEL_KIND

const ModelKindRow& RowOf(ModelKind model);

// Returns the row of kinds whose class template is M.
template <template <typename> class M>
constexpr ModelKindRow MakeRow(const ModelTraits& traits,
                               std::string_view data,
                               void (*check)(const ModelConfig&),
                               bool (*fit)(ModelConfig&, const DataShape&)) {
  return {traits,
          data,
          check,
          fit,
          MakeModelOfClass<M<float>, float>,
          MakeModelOfClass<M<double>, double>};
}

}  // namespace numsim
