// Arrays of float32 to and from codes of small formats: what a user of casts includes.
//
//   const numsim::Format e4m3fn = numsim::ParseFormat("e4m3fn");
//   const numsim::EncodePlan plan = numsim::MakeEncodePlan(e4m3fn.spec, {}, numsim::Overflow::kSaturate);
//   numsim::Encode(plan, values, codes);         // on all threads, the same bits on any backend
//   numsim::Decode(e4m3fn.spec, codes, values);
#pragma once

#include "numsim/cast/arithmetic.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding.h"
