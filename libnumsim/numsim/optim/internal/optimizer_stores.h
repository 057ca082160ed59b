// The states of one tensor as they are stored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "numsim/moments/moment_store.h"
#include "numsim/optim/optimizer_rule.h"
#include "numsim/optim/optimizer_state.h"

namespace numsim {

// Where states that are not kept as float32 are worked on: an array for each, which all tensors
// share.
using StateScratch = std::vector<std::vector<float>>;

class StateStores {
 public:
  // Zeros, in the formats that the configuration has for the role and the parameter.
  StateStores(const OptimizerConfig& config,
              const Parameter<float>& parameter,
              std::vector<StateSpec> specs);

  bool AreExact() const;  // all are float32

  // Makes the scratch large enough.
  void Reserve(StateScratch& scratch) const;
  // The values of each state, in place where they are float32 and not `measure`d. They stay until
  // the next call.
  std::span<const std::span<float>> Open(StateScratch& scratch, bool measure);
  // Stores the values that Open gave. Each state draws random bits of its own of `stream`, which is
  // below 2^58.
  void Store(uint64_t seed, uint64_t stream);
  // Loads what was stored into the values that Open gave.
  void Load();

  // Of the states of a role together; the losses of the last Store, where measured.
  MomentLoss Loss(StateRole role) const;
  double Bytes(StateRole role) const;

  // Pieces "PREFIX/NAME".
  void Save(const std::string& prefix, std::vector<NamedBytes>& state) const;
  // Throws Error naming what is missing or does not fit.
  void Restore(const std::string& prefix, StateReader& state);

 private:
  struct Entry {
    StateSpec spec;
    MomentStore store;
    MomentLoss loss = {};
  };
  bool InPlace(const Entry& entry) const { return entry.store.format().IsExact() && !measures_; }

  std::vector<Entry> entries_;
  std::vector<std::span<float>> values_;
  bool measures_ = false;
};

}  // namespace numsim
