// Elementary functions of arrays of codes, on all threads. Results equal those of the scalar function
// of arith/elementary.h bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numsim/arith/elementary.h"
#include "numsim/cast/arithmetic.h"
#include "numsim/cast/cast.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

// Writes out[i] = function(a[i]) in the plan's format. Random bits, flags, the result, requirements
// and errors are as in Arithmetic (arithmetic.h). An array with at least as many elements as the
// format of `a` has codes goes through an ElementaryTable if that format has up to 16 bits.
Flags Elementary(ElementaryFunction function,
                 const ArrayOperand& a,
                 const EncodePlan& to,
                 Codes out,
                 const ArrayRandom& random = {},
                 bool want_flags = false,
                 std::span<uint8_t> flags = {});

// The results of a function for every code of a format. It costs one evaluation per code (up to 0.1
// s for 16 bits), after which an element costs a look-up. Build it once for many arrays.
class ElementaryTable {
 public:
  // Throws Error if `from` has more than 16 bits.
  ElementaryTable(ElementaryFunction function, const FormatSpec& from, const EncodePlan& to);

  // Writes out[i] = function(in[i]), with random bits, flags and result as in Elementary. `in` are
  // codes of `from`.
  Flags Apply(const ConstCodes& in,
              Codes out,
              const ArrayRandom& random = {},
              bool want_flags = false,
              std::span<uint8_t> flags = {}) const;

 private:
  template <typename In, typename Out>
  Flags ApplyTo(const In* in,
                Out* out,
                size_t n,
                const ArrayRandom& random,
                bool want_flags,
                uint8_t* flags) const;

  FormatSpec from_;
  EncodePlan plan_;
  // By code of `from`: the rounded results, or under stochastic rounding the unrounded ones with the
  // flags that rounding does not add.
  std::vector<uint32_t> codes_;
  std::vector<Unrounded> unrounded_;
  std::vector<uint8_t> flags_;
};

}  // namespace numsim
