// The names of formats in other libraries and in standards.
#include "numsim/formats/format_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

#include "numsim/formats/internal/name_lookup.h"

namespace numsim {
namespace {

// clang-format off
constexpr FormatName kNames[] = {
    // torch. A byte of float4_e2m1fn_x2 holds two codes.
    {"torch", "float32", "fp32"}, {"torch", "float", "fp32"}, {"torch", "float16", "fp16"},
    {"torch", "half", "fp16"}, {"torch", "bfloat16", "bf16"}, {"torch", "int8", "int8"},
    {"torch", "float8_e4m3fn", "e4m3fn"}, {"torch", "float8_e4m3fnuz", "e4m3fnuz"},
    {"torch", "float8_e5m2", "e5m2"}, {"torch", "float8_e5m2fnuz", "e5m2fnuz"},
    {"torch", "float8_e8m0fnu", "e8m0fnu"}, {"torch", "float4_e2m1fn_x2", "e2m1fn"},
    {"torch", "uint8", "uint8"}, {"torch", "int4", "int4"}, {"torch", "int2", "int2"},
    {"torch", "uint4", "uint4"}, {"torch", "uint2", "uint2"}, {"torch", "quint8", "uint8"},
    // ml_dtypes, whose float8_e4m3 is IEEE-like. JAX and TensorFlow have these names too.
    {"ml_dtypes", "bfloat16", "bf16"}, {"ml_dtypes", "float8_e3m4", "e3m4"},
    {"ml_dtypes", "float8_e4m3", "e4m3"}, {"ml_dtypes", "float8_e4m3b11fnuz", "e4m3b11fnuz"},
    {"ml_dtypes", "float8_e4m3fn", "e4m3fn"}, {"ml_dtypes", "float8_e4m3fnuz", "e4m3fnuz"},
    {"ml_dtypes", "float8_e5m2", "e5m2"}, {"ml_dtypes", "float8_e5m2fnuz", "e5m2fnuz"},
    {"ml_dtypes", "float8_e8m0fnu", "e8m0fnu"}, {"ml_dtypes", "float6_e2m3fn", "e2m3fn"},
    {"ml_dtypes", "float6_e3m2fn", "e3m2fn"}, {"ml_dtypes", "float4_e2m1fn", "e2m1fn"},
    {"ml_dtypes", "int4", "int4"}, {"ml_dtypes", "int2", "int2"}, {"ml_dtypes", "uint4", "uint4"},
    {"ml_dtypes", "uint2", "uint2"},
    // OCP's texts. Their E4M3 is not here: it is e4m3 in any case, which has a note.
    {"OCP", "E2M1", "e2m1fn"}, {"OCP", "E2M3", "e2m3fn"}, {"OCP", "E3M2", "e3m2fn"},
    {"OCP", "E8M0", "e8m0fnu"}, {"OCP", "FP8 E4M3", "e4m3fn"}, {"OCP", "FP8 E5M2", "e5m2"},
    {"OCP", "FP6 E2M3", "e2m3fn"}, {"OCP", "FP6 E3M2", "e3m2fn"}, {"OCP", "FP4 E2M1", "e2m1fn"},
    {"OCP", "OFP8 E4M3", "e4m3fn"}, {"OCP", "OFP8 E5M2", "e5m2"},
    // CUDA: cuda_fp8.h, cuda_fp6.h, cuda_fp4.h, cuda_bf16.h, cuda_fp16.h, library_types.h.
    {"CUDA", "__nv_fp8_e4m3", "e4m3fn"}, {"CUDA", "__nv_fp8_e5m2", "e5m2"},
    {"CUDA", "__nv_fp8_e8m0", "e8m0fnu"}, {"CUDA", "__nv_fp6_e2m3", "e2m3fn"},
    {"CUDA", "__nv_fp6_e3m2", "e3m2fn"}, {"CUDA", "__nv_fp4_e2m1", "e2m1fn"},
    {"CUDA", "__nv_bfloat16", "bf16"}, {"CUDA", "__half", "fp16"},
    {"CUDA", "nv_fp8_e4m3", "e4m3fn"}, {"CUDA", "nv_fp8_e5m2", "e5m2"},
    {"CUDA", "nv_fp8_e8m0", "e8m0fnu"}, {"CUDA", "nv_fp6_e2m3", "e2m3fn"},
    {"CUDA", "nv_fp6_e3m2", "e3m2fn"}, {"CUDA", "nv_fp4_e2m1", "e2m1fn"},
    {"CUDA", "nv_bfloat16", "bf16"}, {"CUDA", "nv_half", "fp16"},
    {"CUDA", "__NV_E4M3", "e4m3fn"}, {"CUDA", "__NV_E5M2", "e5m2"},
    {"CUDA", "__NV_E2M3", "e2m3fn"}, {"CUDA", "__NV_E3M2", "e3m2fn"}, {"CUDA", "__NV_E2M1", "e2m1fn"},
    {"CUDA", "CUDA_R_32F", "fp32"}, {"CUDA", "CUDA_R_16F", "fp16"}, {"CUDA", "CUDA_R_16BF", "bf16"},
    {"CUDA", "CUDA_R_8I", "int8"}, {"CUDA", "CUDA_R_8U", "uint8"}, {"CUDA", "CUDA_R_4I", "int4"},
    {"CUDA", "CUDA_R_4U", "uint4"}, {"CUDA", "CUDA_R_8F_E4M3", "e4m3fn"},
    {"CUDA", "CUDA_R_8F_E5M2", "e5m2"}, {"CUDA", "CUDA_R_8F_UE4M3", "ue4m3fn"},
    {"CUDA", "CUDA_R_8F_UE8M0", "e8m0fnu"}, {"CUDA", "CUDA_R_6F_E2M3", "e2m3fn"},
    {"CUDA", "CUDA_R_6F_E3M2", "e3m2fn"}, {"CUDA", "CUDA_R_4F_E2M1", "e2m1fn"},
    // PTX: types of instructions, and of scales.
    {"PTX", ".f32", "fp32"}, {"PTX", ".tf32", "tf32"}, {"PTX", ".f16", "fp16"},
    {"PTX", ".bf16", "bf16"}, {"PTX", ".e4m3", "e4m3fn"}, {"PTX", ".e5m2", "e5m2"},
    {"PTX", ".e2m3", "e2m3fn"}, {"PTX", ".e3m2", "e3m2fn"}, {"PTX", ".e2m1", "e2m1fn"},
    {"PTX", ".ue4m3", "ue4m3fn"}, {"PTX", ".ue8m0", "e8m0fnu"}, {"PTX", ".s8", "int8"}, {"PTX", ".u8", "uint8"}, {"PTX", ".s4", "int4"}, {"PTX", ".u4", "uint4"},
    {"PTX", ".e4m3x2", "e4m3fn"}, {"PTX", ".e5m2x2", "e5m2"}, {"PTX", ".e2m3x2", "e2m3fn"},
    {"PTX", ".e3m2x2", "e3m2fn"}, {"PTX", ".e2m1x2", "e2m1fn"}, {"PTX", ".ue8m0x2", "e8m0fnu"},
    {"PTX", "ue4m3", "ue4m3fn"}, {"PTX", "ue8m0", "e8m0fnu"},
    // CUTLASS.
    {"CUTLASS", "float_e4m3_t", "e4m3fn"}, {"CUTLASS", "float_e5m2_t", "e5m2"},
    {"CUTLASS", "float_e2m3_t", "e2m3fn"}, {"CUTLASS", "float_e3m2_t", "e3m2fn"},
    {"CUTLASS", "float_e2m1_t", "e2m1fn"}, {"CUTLASS", "float_ue4m3_t", "ue4m3fn"},
    {"CUTLASS", "float_ue8m0_t", "e8m0fnu"}, {"CUTLASS", "bfloat16_t", "bf16"},
    {"CUTLASS", "half_t", "fp16"}, {"CUTLASS", "tfloat32_t", "tf32"},
    // HIP, which has both OCP's formats and those of older devices.
    {"HIP", "__hip_fp8_e4m3", "e4m3fn"}, {"HIP", "__hip_fp8_e5m2", "e5m2"},
    {"HIP", "__hip_fp8_e4m3_fnuz", "e4m3fnuz"}, {"HIP", "__hip_fp8_e5m2_fnuz", "e5m2fnuz"},
    {"HIP", "__hip_bfloat16", "bf16"}, {"HIP", "HIP_R_8F_E4M3", "e4m3fn"},
    {"HIP", "HIP_R_8F_E5M2", "e5m2"}, {"HIP", "HIP_R_8F_E4M3_FNUZ", "e4m3fnuz"},
    {"HIP", "HIP_R_8F_E5M2_FNUZ", "e5m2fnuz"},
    // ONNX.
    {"ONNX", "FLOAT", "fp32"}, {"ONNX", "FLOAT16", "fp16"}, {"ONNX", "BFLOAT16", "bf16"},
    {"ONNX", "FLOAT8E4M3FN", "e4m3fn"}, {"ONNX", "FLOAT8E4M3FNUZ", "e4m3fnuz"},
    {"ONNX", "FLOAT8E5M2", "e5m2"}, {"ONNX", "FLOAT8E5M2FNUZ", "e5m2fnuz"},
    {"ONNX", "FLOAT4E2M1", "e2m1fn"}, {"ONNX", "FLOAT8E8M0", "e8m0fnu"}, {"ONNX", "INT8", "int8"},
    {"ONNX", "UINT8", "uint8"}, {"ONNX", "INT4", "int4"}, {"ONNX", "UINT4", "uint4"},
    {"ONNX", "INT2", "int2"}, {"ONNX", "UINT2", "uint2"},
    // safetensors.
    {"safetensors", "F32", "fp32"}, {"safetensors", "F16", "fp16"}, {"safetensors", "BF16", "bf16"},
    {"safetensors", "I8", "int8"}, {"safetensors", "F8_E4M3", "e4m3fn"},
    {"safetensors", "F8_E5M2", "e5m2"}, {"safetensors", "F8_E8M0", "e8m0fnu"},
    {"safetensors", "F8_E4M3FNUZ", "e4m3fnuz"}, {"safetensors", "F8_E5M2FNUZ", "e5m2fnuz"},
    {"safetensors", "F6_E2M3", "e2m3fn"}, {"safetensors", "F6_E3M2", "e3m2fn"},
    {"safetensors", "F4", "e2m1fn"},
    // MLIR and StableHLO, whose f8E4M3 is IEEE-like; LLVM's APFloat.
    {"MLIR", "f32", "fp32"}, {"MLIR", "f16", "fp16"}, {"MLIR", "f8E4M3", "e4m3"},
    {"MLIR", "f8E3M4", "e3m4"}, {"MLIR", "f8E4M3FN", "e4m3fn"}, {"MLIR", "f8E5M2", "e5m2"},
    {"MLIR", "f8E4M3FNUZ", "e4m3fnuz"}, {"MLIR", "f8E5M2FNUZ", "e5m2fnuz"},
    {"MLIR", "f8E4M3B11FNUZ", "e4m3b11fnuz"}, {"MLIR", "f8E8M0FNU", "e8m0fnu"},
    {"MLIR", "f6E2M3FN", "e2m3fn"}, {"MLIR", "f6E3M2FN", "e3m2fn"}, {"MLIR", "f4E2M1FN", "e2m1fn"},
    {"APFloat", "IEEEsingle", "fp32"}, {"APFloat", "IEEEhalf", "fp16"}, {"APFloat", "BFloat", "bf16"},
    {"APFloat", "FloatTF32", "tf32"}, {"APFloat", "Float8E5M2", "e5m2"},
    {"APFloat", "Float8E5M2FNUZ", "e5m2fnuz"}, {"APFloat", "Float8E4M3", "e4m3"},
    {"APFloat", "Float8E4M3FN", "e4m3fn"}, {"APFloat", "Float8E4M3FNUZ", "e4m3fnuz"},
    {"APFloat", "Float8E4M3B11FNUZ", "e4m3b11fnuz"}, {"APFloat", "Float8E3M4", "e3m4"},
    {"APFloat", "Float8E8M0FNU", "e8m0fnu"}, {"APFloat", "Float6E3M2FN", "e3m2fn"},
    {"APFloat", "Float6E2M3FN", "e2m3fn"}, {"APFloat", "Float4E2M1FN", "e2m1fn"},
    // Triton.
    {"Triton", "float8e4nv", "e4m3fn"}, {"Triton", "float8e5", "e5m2"},
    {"Triton", "float8e4b8", "e4m3fnuz"}, {"Triton", "float8e5b16", "e5m2fnuz"},
    {"Triton", "fp8e4nv", "e4m3fn"}, {"Triton", "fp8e5", "e5m2"},
    {"Triton", "fp8e4b8", "e4m3fnuz"}, {"Triton", "fp8e5b16", "e5m2fnuz"},
    // IEEE 754 and NVIDIA's name of TF32.
    {"IEEE754", "binary32", "fp32"}, {"IEEE754", "binary16", "fp16"}, {"TF32", "tfloat32", "tf32"},
};
// clang-format on

constexpr std::string_view kNamespaces[] = {"torch.",
                                            "ml_dtypes.",
                                            "jax.numpy.",
                                            "jnp.",
                                            "numpy.",
                                            "np.",
                                            "tf.",
                                            "tl.",
                                            "onnx.",
                                            "tensorproto.",
                                            "cutlass::"};

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

using Entries = std::map<std::string, const FormatEntry*, std::less<>>;

Entries MakeEntries() {
  Entries entries;
  for (const FormatEntry& entry : FormatTable()) entries.emplace(entry.name, &entry);
  for (const FormatName& row : kNames) {
    const FormatEntry* const entry = FindFormat(row.format);
    NUMSIM_CHECK(entry != nullptr, "{} has no format {}", row.name, row.format);
    const auto [known, added] = entries.emplace(FoldedName(row.name), entry);
    NUMSIM_CHECK(added || known->second == entry, "{} has two meanings", row.name);
  }
  return entries;
}

}  // namespace

std::span<const FormatName> OtherFormatNames() { return kNames; }

std::string FoldedName(std::string_view name) {
  std::string folded(name);
  std::transform(folded.begin(), folded.end(), folded.begin(), Lower);
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view prefix : kNamespaces) {
      if (!folded.starts_with(prefix)) continue;
      folded.erase(0, prefix.size());
      found = true;
    }
  }
  std::replace(folded.begin(), folded.end(), '_', '-');
  std::replace(folded.begin(), folded.end(), ' ', '-');
  return folded;
}

const FormatEntry* FindFoldedName(std::string_view folded) {
  static const Entries entries = MakeEntries();
  const auto found = entries.find(folded);
  return found == entries.end() ? nullptr : found->second;
}

}  // namespace numsim
