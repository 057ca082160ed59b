// The header to include for casts between float32 arrays and codes of small formats.
//
//   const numsim::Format e4m3fn = numsim::ParseFormat("e4m3fn");
//   const numsim::EncodePlan plan =
//       numsim::MakeEncodePlan(e4m3fn.spec, {}, numsim::Overflow::kSaturate);
//   numsim::Encode(plan, values, codes);  // on all threads; the same bits on every backend
//   numsim::Decode(e4m3fn.spec, codes, values);
//
// A call that breaks a requirement stated in its comment, such as arrays of unequal size, throws
// numsim::Error before it writes anything. This holds for every header of the library.
#pragma once

#include "numsim/base/error.h"
#include "numsim/cast/arithmetic.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding.h"
