#include "numsim/optim/internal/optimizer_stores.h"

#include <algorithm>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/formats/named_formats.h"
#include "numsim/models/model_config.h"

namespace numsim {
namespace {

MomentStore EmptyStore(const MomentFormat& format, const StateSpec& spec) {
  return {format, spec.size, /*is_signed=*/spec.role != StateRole::kSecondMoment};
}

}  // namespace

MomentFormat StateFormat(const OptimizerConfig& config,
                         const Parameter<float>& parameter,
                         StateRole role) {
  MomentFormat plain;
  plain.format = {"fp32", kFp32};
  const bool takes = (config.moment_filter == MomentFilter::kAll || IsMatrix(parameter.role)) &&
                     parameter.Elements() >= config.moment_minimum &&
                     MatchesPattern(config.moment_tensors, parameter.name);
  if (!takes || role == StateRole::kOther) return plain;
  return role == StateRole::kFirstMoment ? config.m : config.v;
}

StateStores::StateStores(const OptimizerConfig& config,
                         const Parameter<float>& parameter,
                         std::vector<StateSpec> specs)
    : values_(specs.size()) {
  for (StateSpec& spec : specs) {
    const auto has_name = [&](const Entry& entry) { return entry.spec.name == spec.name; };
    NUMSIM_REQUIRE(spec.name != "steps" && std::none_of(entries_.begin(), entries_.end(), has_name),
                   "OptimizerRule::States: two states '{}', expected distinct names",
                   spec.name);
    const MomentFormat format = StateFormat(config, parameter, spec.role);
    MomentStore store = EmptyStore(format, spec);
    entries_.push_back({std::move(spec), std::move(store)});
  }
}

bool StateStores::AreExact() const {
  return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
    return entry.store.format().IsExact();
  });
}

void StateStores::Reserve(StateScratch& scratch) const {
  if (scratch.size() < entries_.size()) scratch.resize(entries_.size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (scratch[i].size() < entries_[i].spec.size) scratch[i].resize(entries_[i].spec.size);
  }
}

std::span<const std::span<float>> StateStores::Open(StateScratch& scratch, bool measure) {
  measures_ = measure;
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    entry.loss = {};
    if (InPlace(entry)) {
      values_[i] = entry.store.Values();
      continue;
    }
    values_[i] = std::span(scratch[i]).first(entry.spec.size);
    entry.store.Load(values_[i]);
  }
  return values_;
}

RandomStream StateStores::RandomOf(size_t i, RandomStream tensor) {
  // States 0 and 1 take neighbouring streams; later pairs are offset by multiples of 2^59.
  return {tensor.seed, (uint64_t{i / 2} << 59) + 2 * tensor.stream + i % 2};
}

void StateStores::Store(uint64_t seed, uint64_t stream) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (InPlace(entry)) continue;
    entry.loss = entry.store.Store(values_[i], RandomOf(i, {seed, stream}), measures_);
  }
}

void StateStores::Load() {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!InPlace(entries_[i])) entries_[i].store.Load(values_[i]);
  }
}

MomentLoss StateStores::Loss(StateRole role) const {
  MomentLoss total;
  for (const Entry& entry : entries_) {
    if (entry.spec.role == role) total += entry.loss;
  }
  return total;
}

double StateStores::Bytes(StateRole role) const {
  double bytes = 0;
  for (const Entry& entry : entries_) {
    if (entry.spec.role == role) bytes += static_cast<double>(entry.store.Bytes());
  }
  return bytes;
}

void StateStores::Save(const std::string& prefix, std::vector<NamedBytes>& state) const {
  for (const Entry& entry : entries_) {
    state.push_back({prefix + "/" + entry.spec.name, entry.store.Save()});
  }
}

void RestoreMoment(const std::string& name, MomentStore& moment, StateReader& state) {
  const std::span<const std::byte> bytes = state.Find(name);
  try {
    moment.Restore(bytes);
  } catch (const Error& error) {
    throw Error::Format("optimiser state: '{}': {}", name, error.what());
  }
}

void StateStores::Restore(const std::string& prefix, StateReader& state) {
  for (Entry& entry : entries_) RestoreMoment(prefix + "/" + entry.spec.name, entry.store, state);
}

void StateStores::GoOnFrom(const OptimizerConfig& former,
                           const Parameter<float>& parameter,
                           StateReader& state,
                           RandomStream random) {
  std::vector<float> values;
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const std::string name = parameter.name + "/" + entry.spec.name;
    const MomentFormat format = StateFormat(former, parameter, entry.spec.role);
    if (ToString(format) == ToString(entry.store.format())) {
      RestoreMoment(name, entry.store, state);
      continue;
    }
    MomentStore stored = EmptyStore(format, entry.spec);
    RestoreMoment(name, stored, state);
    values.resize(entry.spec.size);
    stored.Load(std::span(values));
    entry.store.Store(std::span(values), RandomOf(i, random));
  }
}

}  // namespace numsim
