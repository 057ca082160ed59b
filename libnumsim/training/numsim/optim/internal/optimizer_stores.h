// The stored states of one tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "numsim/moments/moment_store.h"
#include "numsim/optim/optimizer_rule.h"
#include "numsim/optim/optimizer_state.h"

namespace numsim {

// Working memory for states that are not stored as float32: one array per state, shared by all
// tensors.
using StateScratch = std::vector<std::vector<float>>;

// Returns the format in which the configuration stores states of a role for the parameter.
MomentFormat StateFormat(const OptimizerConfig& config,
                         const Parameter<float>& parameter,
                         StateRole role);

// Restores a moment from the piece of that name. Throws Error naming the piece if it is missing or
// does not fit.
void RestoreMoment(const std::string& name, MomentStore& moment, StateReader& state);

class StateStores {
 public:
  // Creates the states as zeros, in the formats that the configuration selects for the role and the
  // parameter.
  StateStores(const OptimizerConfig& config,
              const Parameter<float>& parameter,
              std::vector<StateSpec> specs);

  bool AreExact() const;  // true if all states are stored as float32

  // Grows the scratch memory to the size that Open needs.
  void Reserve(StateScratch& scratch) const;
  // Returns the values of each state. They are the stored values themselves if the state is float32
  // and `measure` is false, else a copy in `scratch`. Valid until the next call.
  std::span<const std::span<float>> Open(StateScratch& scratch, bool measure);
  // Stores the values that Open returned. Each state uses its own random bits, derived from
  // `stream`. Requires stream < 2^58.
  void Store(uint64_t seed, uint64_t stream);
  // Reads the stored states back into the values that Open returned.
  void Load();

  // Totals over the states of one role. Loss is that of the last Store; zeros unless measured.
  MomentLoss Loss(StateRole role) const;
  double Bytes(StateRole role) const;

  // Appends the states to `state` as pieces "PREFIX/NAME".
  void Save(const std::string& prefix, std::vector<NamedBytes>& state) const;
  // Throws Error naming the piece that is missing or does not fit.
  void Restore(const std::string& prefix, StateReader& state);
  // Takes the states over from pieces of the parameter that were stored as the configuration `former`
  // selects. A state in another format is read as values, which are stored in its own format with these
  // random bits. Throws Error as Restore does.
  void GoOnFrom(const OptimizerConfig& former,
                const Parameter<float>& parameter,
                StateReader& state,
                RandomStream random);

 private:
  struct Entry {
    StateSpec spec;
    MomentStore store;
    MomentLoss loss = {};
  };
  // Returns the random bits of state `i` within those of the tensor.
  static RandomStream RandomOf(size_t i, RandomStream tensor);
  bool InPlace(const Entry& entry) const { return entry.store.format().IsExact() && !measures_; }

  std::vector<Entry> entries_;
  std::vector<std::span<float>> values_;
  bool measures_ = false;
};

}  // namespace numsim
