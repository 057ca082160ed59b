// What quantized_device.cc runs on the device itself.
#pragma once

#include <cstdint>

#include "numsim/backend/device.h"
#include "numsim/backend/device_matrix.h"
#include "numsim/quantize/scale.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

// absmax[i] becomes the scale that `maker` makes of it, inv_scales[i] its inv_scale.
void MakeScalesOnDevice(const ScaleFactory& maker,
                        DeviceSpan<float> absmax,
                        DeviceSpan<float> inv_scales,
                        DeviceStream& stream);

void SetScaleOnDevice(const Scale& given, float* scale, float* inv_scale, DeviceStream& stream);

// Layout kRow, codes in order: maximum, scale and codes of each row with one read of it. False, and
// nothing done, where that does not serve: rows of more than 32,768 elements or not of whole 16
// bytes, a plan without a quick encoder, codes not aligned to 8 bytes.
bool QuantizeRowsOnDevice(const EncodePlan& plan,
                          const DeviceMatrix& in,
                          const ScaleFactory& maker,
                          uint8_t* codes,
                          float* scales,
                          DeviceStream& stream);

}  // namespace numsim
