// A C program that uses every part of the C interface. Prints each wrong result; exits 1 if there
// was one. Expected codes are worked out by hand, see docs/rounding.md.
#include <numsim.h>
#include <stdio.h>
#include <string.h>

static int g_checks = 0;
static int g_failures = 0;

static void Check(int condition, const char* text, int line) {
  ++g_checks;
  if (condition) return;
  ++g_failures;
  printf("line %d: not true: %s\n", line, text);
}
#define CHECK(condition) Check((condition) != 0, #condition, __LINE__)
#define CHECK_OK(call) CHECK((call) == NUMSIM_OK)

// A format that must exist.
static numsim_format_t Format(const char* name) {
  numsim_format_t format;
  memset(&format, 0, sizeof format);
  CHECK_OK(numsim_format_by_name(name, &format, NULL, 0));
  return format;
}

static void Versions(void) {
  char expected[32];
  const int number = numsim_version_number();
  sprintf(expected, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
  CHECK(strcmp(numsim_version(), expected) == 0);
  CHECK(numsim_abi_version() == NUMSIM_ABI_VERSION);
  CHECK(strcmp(numsim_status_text(NUMSIM_OK), "success") == 0);
  CHECK(strcmp(numsim_status_text(12345), "unknown status") == 0);
}

static void Formats(void) {
  char text[128];
  char message[16];
  size_t i;
  numsim_format_info_t info;
  numsim_format_t custom = Format("e5m3:bias=20"), e4m3fn = Format("e4m3fn");
  for (i = 0; i < numsim_format_count(); ++i) {
    const numsim_format_t format = Format(numsim_format_name(i));
    CHECK_OK(numsim_format_text(&format, text, sizeof text));
    CHECK(strcmp(text, numsim_format_name(i)) == 0);
  }
  CHECK(numsim_format_count() > 40 && numsim_format_name(numsim_format_count()) == NULL);
  CHECK_OK(numsim_format_text(&custom, text, sizeof text));
  CHECK(strcmp(text, "e5m3:bias=20") == 0);
  CHECK_OK(numsim_format_info(&e4m3fn, &info));
  CHECK(info.bits == 8 && info.storage_bytes == 1 && info.is_signed && !info.has_infinity);
  CHECK(info.max_finite_code == 0x7E && info.max_finite_bits == 0x43E00000u);  // 448
  CHECK(info.has_nan && info.nan_code == 0x7F && info.infinity_code == 0);
  CHECK(info.min_normal_bits == 0x3C800000u && info.min_positive_bits == 0x3B000000u);
  CHECK(numsim_format_by_name("no-such-format", &custom, message, sizeof message) ==
        NUMSIM_ERROR_UNKNOWN_FORMAT);
  CHECK(strcmp(message, "format 'no-such") == 0);  // cut to the buffer
}

static void Conversions(void) {
  const numsim_format_t e4m3fn = Format("e4m3fn"), e5m2 = Format("e5m2");
  numsim_rounding_t rounding = numsim_rounding_default();
  uint32_t code = 0, f32 = 0;
  uint64_t f64 = 0;
  uint8_t flags = 0xFF;
  CHECK_OK(numsim_encode_f32(0x3F47AE14u, &e4m3fn, NULL, 0, &code, &flags));  // 0.78
  CHECK(code == 0x34 && flags == NUMSIM_INEXACT);
  CHECK_OK(numsim_encode_f32(0x3F800000u, &e4m3fn, &rounding, 0, &code, &flags));
  CHECK(code == 0x38 && flags == 0);
  CHECK_OK(numsim_encode_f32(0x43E88000u, &e4m3fn, NULL, 0, &code, &flags));  // 465
  CHECK(code == 0x7F && flags == (NUMSIM_OVERFLOW | NUMSIM_INEXACT));
  rounding.overflow = NUMSIM_OVERFLOW_SATURATE;
  CHECK_OK(numsim_encode_f32(0x43E88000u, &e4m3fn, &rounding, 0, &code, NULL));
  CHECK(code == 0x7E);
  rounding.mode = NUMSIM_ROUND_UP;
  CHECK_OK(numsim_encode_f32(0x3F47AE14u, &e4m3fn, &rounding, 0, &code, NULL));
  CHECK(code == 0x35);
  // 1.0625 + 2^-40 is above the tie between 1 and 1.125.
  CHECK_OK(numsim_encode_f64(0x3FF1000000001000u, &e4m3fn, NULL, 0, &code, &flags));
  CHECK(code == 0x39 && flags == NUMSIM_INEXACT);
  CHECK_OK(numsim_decode_f32(&e4m3fn, 0xFE, &f32));
  CHECK(f32 == 0xC3E00000u);  // -448
  CHECK_OK(numsim_decode_f64(&e4m3fn, 0xFE, &f64));
  CHECK(f64 == 0xC07C000000000000u);
  CHECK_OK(numsim_decode_f64(&e5m2, 0xFC, &f64));
  CHECK(f64 == 0xFFF0000000000000u);
}

// 0.78 lies 7.68 / 16 of the way from 0x34 to 0x35, which variant A cuts to 7.
static void Stochastic(void) {
  const numsim_format_t e4m3fn = Format("e4m3fn");
  const uint32_t words[2] = {8, 9 + 0xABC0u};  // bits above random_bits do not count
  const float in[2] = {0.78f, 0.78f};
  uint8_t codes[2] = {0, 0};
  uint32_t code = 0, drawn = 0, i;
  numsim_rounding_t rounding = numsim_rounding_default();
  numsim_random_t random = {NULL, 7, 1, 100};
  uint8_t many_codes[100];
  float many[100];
  rounding.mode = NUMSIM_ROUND_STOCHASTIC;
  rounding.random_bits = 4;
  CHECK_OK(numsim_encode_f32(0x3F47AE14u, &e4m3fn, &rounding, 8, &code, NULL));
  CHECK(code == 0x34);
  CHECK_OK(numsim_encode_f32(0x3F47AE14u, &e4m3fn, &rounding, 9, &code, NULL));
  CHECK(code == 0x35);
  for (i = 0; i < 100; ++i) many[i] = 0.78f;
  CHECK_OK(numsim_encode_array_f32(many, 100, &e4m3fn, &rounding, &random, many_codes, 1));
  for (i = 0; i < 100; ++i) {
    CHECK_OK(numsim_random_bits(7, 1, 100 + i, 4, &drawn));
    CHECK(many_codes[i] == (drawn >= 9 ? 0x35 : 0x34));
  }
  random.words = words;
  CHECK_OK(numsim_encode_array_f32(in, 2, &e4m3fn, &rounding, &random, codes, 1));
  CHECK(codes[0] == 0x34 && codes[1] == 0x35);
}

static void Arithmetic(void) {
  const numsim_format_t f = Format("e4m3fn"), g = Format("e5m2"), fp32 = Format("fp32");
  uint32_t code = 0;
  uint8_t flags = 0;
  int relation = -1;
  CHECK_OK(numsim_add(&f, 0x38, &g, 0x3C, &f, NULL, 0, &code, &flags));
  CHECK(code == 0x40 && flags == 0);  // 1 + 1
  CHECK_OK(numsim_subtract(&f, 0x40, &f, 0x38, &f, NULL, 0, &code, NULL));
  CHECK(code == 0x38);
  CHECK_OK(numsim_multiply(&f, 0x40, &f, 0xC0, &g, NULL, 0, &code, NULL));
  CHECK(code == 0xC4);  // 2 * -2 = -4
  CHECK_OK(numsim_divide(&f, 0x38, &f, 0x40, &f, NULL, 0, &code, NULL));
  CHECK(code == 0x30);
  CHECK_OK(numsim_divide(&g, 0x3C, &g, 0x80, &g, NULL, 0, &code, &flags));
  CHECK(code == 0xFC && flags == NUMSIM_DIVIDE_BY_ZERO);
  CHECK_OK(numsim_fma(&f, 0x40, &g, 0x40, &fp32, 0x3F800000u, &fp32, NULL, 0, &code, NULL));
  CHECK(code == 0x40A00000u);  // 2 * 2 + 1
  CHECK_OK(numsim_sqrt(&f, 0x48, &f, NULL, 0, &code, &flags));
  CHECK(code == 0x40 && flags == 0);
  CHECK_OK(numsim_sqrt(&f, 0xB8, &f, NULL, 0, &code, &flags));
  CHECK(code == 0x7F && flags == NUMSIM_INVALID);
  CHECK_OK(numsim_remainder(&f, 0x4A, &f, 0x40, &f, NULL, 0, &code, NULL));
  CHECK(code == 0x38);  // 5 - 2 * 2
  CHECK_OK(numsim_convert(&g, 0xFE, &f, NULL, 0, &code, NULL));
  CHECK(code == 0xFF);  // NaN keeps its sign
  CHECK_OK(numsim_scale(&f, 0x38, 3, &f, NULL, 0, &code, NULL));
  CHECK(code == 0x50);
  CHECK_OK(numsim_extremum(NUMSIM_MAXIMUM, &f, 0x38, &f, 0x40, &f, NULL, 0, &code, NULL));
  CHECK(code == 0x40);
  CHECK_OK(numsim_extremum(NUMSIM_MINIMUM_NUMBER, &f, 0x7F, &f, 0x40, &f, NULL, 0, &code, NULL));
  CHECK(code == 0x40);
  CHECK_OK(numsim_compare(&f, 0x38, &g, 0x40, &relation));
  CHECK(relation == NUMSIM_LESS);
  CHECK_OK(numsim_compare(&f, 0x00, &g, 0x80, &relation));
  CHECK(relation == NUMSIM_EQUAL);
  CHECK_OK(numsim_compare(&f, 0x7F, &f, 0x7F, &relation));
  CHECK(relation == NUMSIM_UNORDERED);
}

static void Arrays(void) {
  const numsim_format_t e4m3fn = Format("e4m3fn"), fp16 = Format("fp16"), tf32 = Format("tf32");
  const float in[4] = {0.78f, 1.0f, -448.0f, 465.0f};
  const double wide[2] = {1.0 + 0x1p-4 + 0x1p-40, -1.0};
  uint8_t bytes[4], flags[4], all = 0;
  uint16_t halves[4];
  uint32_t words[4];
  float out[4];
  numsim_codes_t a, b;
  CHECK_OK(numsim_encode_array_f32(in, 4, &e4m3fn, NULL, NULL, bytes, 1));
  CHECK(bytes[0] == 0x34 && bytes[1] == 0x38 && bytes[2] == 0xFE && bytes[3] == 0x7F);
  CHECK_OK(numsim_encode_array_f32(in, 4, &fp16, NULL, NULL, halves, 2));
  CHECK(halves[0] == 0x3A3D && halves[1] == 0x3C00 && halves[2] == 0xDF00 && halves[3] == 0x5F44);
  CHECK_OK(numsim_encode_array_f32(in, 4, &tf32, NULL, NULL, words, 4));
  CHECK(words[1] == 0x1FC00);
  CHECK_OK(numsim_encode_array_f64(wide, 2, &e4m3fn, NULL, NULL, bytes, 1));
  CHECK(bytes[0] == 0x39 && bytes[1] == 0xB8);
  CHECK_OK(numsim_decode_array_f32(&fp16, halves, 2, 4, out));
  CHECK(out[1] == 1.0f && out[2] == -448.0f && out[3] == 465.0f);

  memset(&a, 0, sizeof a);
  a.format = fp16;
  a.codes = halves;
  a.code_bytes = 2;
  b = a;
  // Twice the array, in place: 465 + 465 = 930 is exact.
  CHECK_OK(numsim_arithmetic_array(
      NUMSIM_OPERATION_ADD, &a, &b, NULL, 4, &fp16, NULL, NULL, halves, 2, flags, &all));
  CHECK(halves[1] == 0x4000 && halves[2] == 0xE300 && halves[3] == 0x6344 && all == 0);
  CHECK(flags[0] == 0 && flags[3] == 0);
}

static void Matrices(void) {
  const numsim_format_t e4m3fn = Format("e4m3fn");
  const float in[6] = {1.0f, -2.0f, 0.5f, 100.0f, 25.0f, -400.0f};
  const numsim_scale_layout_t rows = {NUMSIM_SCALE_ROW, 0, 0}, blocks = {NUMSIM_SCALE_BLOCK, 0, 2};
  const float inv_scales[2] = {2.0f, 0.25f}, scales[2] = {0.5f, 4.0f};
  float absmax[4], out[6];
  uint8_t codes[6];
  size_t count = 0;
  int i;
  CHECK_OK(numsim_scale_count(&blocks, 2, 3, &count));
  CHECK(count == 4);
  CHECK_OK(numsim_absmax(in, 2, 3, &blocks, absmax));
  CHECK(absmax[0] == 2.0f && absmax[1] == 0.5f && absmax[2] == 100.0f && absmax[3] == 400.0f);
  CHECK_OK(numsim_quantize(in, 2, 3, &rows, inv_scales, &e4m3fn, NULL, NULL, 0, codes, 1));
  CHECK(codes[0] == 0x40 && codes[1] == 0xC8 && codes[2] == 0x38);  // 2 -4 1
  CHECK(codes[3] == 0x5C && codes[4] == 0x4C && codes[5] == 0xEC);  // 24 (25 is a tie), 6, -96
  CHECK_OK(numsim_dequantize(&e4m3fn, codes, 1, 2, 3, &rows, scales, out));
  CHECK(out[0] == 1.0f && out[1] == -2.0f && out[3] == 96.0f && out[5] == -384.0f);
  CHECK_OK(numsim_quantize(in, 2, 3, &rows, inv_scales, &e4m3fn, NULL, NULL, 1, codes, 1));
  for (i = 0; i < 6; ++i) out[i] = 0.0f;
  CHECK(codes[0] == 0x40 && codes[1] == 0x5C && codes[2] == 0xC8);
}

// 8 and 1/4096 lie 15 binades apart: a unit that keeps 13 fraction bits drops the smaller.
static void Products(void) {
  const uint8_t a[4] = {0x50, 0x01, 0x38, 0xB8};  // 8, 1/512, 1, -1
  // 1, 1/8, 2, 2 and 0, 1, 1, NaN
  const uint8_t b[8] = {0x38, 0x20, 0x40, 0x40, 0x00, 0x38, 0x38, 0x7F};
  const float scales[4] = {2.0f, 0.5f, 1.0f, 4.0f};
  const float floats[2] = {1.5f, -0.25f};
  numsim_factor_t x, y;
  numsim_accumulator_info_t info;
  char message[16];
  float out[4];
  uint32_t bits;
  size_t i, found = 0;
  memset(&x, 0, sizeof x);
  x.format = Format("e4m3fn");
  x.codes = a;
  x.code_bytes = 1;
  y = x;
  y.codes = b;
  CHECK_OK(numsim_gemm(&x, &y, 1, 2, 4, "exact", out, message, sizeof message));
  CHECK(out[0] == 8.0f + 0x1p-12f && out[1] != out[1] && message[0] == '\0');
  CHECK_OK(numsim_gemm(&x, &y, 1, 2, 4, "hopper-fp8", out, NULL, 0));
  memcpy(&bits, out + 1, sizeof bits);
  CHECK(out[0] == 8.0f && bits == 0x7FFFFFFFu);
  // 4 x 1 times 1 x 1 of floats, the first stored as its transpose.
  y.format = Format("fp32");
  y.codes = floats;
  y.code_bytes = 4;
  x.transposed = 1;
  CHECK_OK(numsim_gemm(&x, &y, 4, 1, 1, "fp32", out, NULL, 0));
  CHECK(out[0] == 12.0f && out[1] == 0x1.8p-9f && out[2] == 1.5f && out[3] == -1.5f);
  // Two vectors of two: 1.5 - 0.25 and so on, each element of x with a scale of its own.
  x.transposed = 0;
  x.scales = scales;
  x.layout.granularity = NUMSIM_SCALE_BLOCK;
  x.layout.block = 1;
  CHECK_OK(numsim_gemm(&x, &y, 2, 1, 2, "fp64", out, NULL, 0));
  CHECK(out[0] == 24.0f - 0x1p-12f && out[1] == 2.5f);
  CHECK(numsim_gemm(&x, &y, 2, 1, 2, "hopper", out, message, sizeof message) ==
        NUMSIM_ERROR_UNKNOWN_ACCUMULATOR);
  CHECK(strcmp(message, "accumulator 'ho") == 0);
  for (i = 0; i < numsim_accumulator_count(); ++i) {
    CHECK_OK(numsim_accumulator_info(i, &info));
    if (strcmp(info.name, "hopper-fp8") != 0) continue;
    ++found;
    CHECK(strcmp(info.rule, "trunc:13,32,128") == 0 && strcmp(info.operands, "e4m3fn, e5m2") == 0);
    CHECK(info.measured == 1 && strcmp(info.source, "Hopper-measured") == 0 && info.note[0] != 0);
  }
  CHECK(found == 1);
  x.scales = NULL;
  CHECK(numsim_gemm(&x, &y, 2, 1, 2, "hopper-bf16", out, NULL, 0) ==
        NUMSIM_ERROR_ACCUMULATOR_OPERANDS);
  CHECK_OK(numsim_gemm_any_operands(&x, &y, 2, 1, 2, "hopper-bf16", out, NULL, 0));
}

static void Scales(void) {
  const numsim_format_t e4m3fn = Format("e4m3fn");
  const float absmax[3] = {448.0f, 14.0f, 0.0f};
  float scales[3], inv_scales[3];
  CHECK_OK(numsim_make_scales(&e4m3fn, absmax, 3, NUMSIM_SCALE_RULE_ABSMAX, scales, inv_scales));
  CHECK(scales[0] == 1.0f && scales[1] == 0x1p-5f && scales[2] == 1.0f);
  CHECK(inv_scales[0] == 1.0f && inv_scales[1] == 32.0f && inv_scales[2] == 1.0f);
  CHECK(numsim_make_scales(&e4m3fn, absmax, 3, 5, scales, inv_scales) == NUMSIM_ERROR_BAD_ARGUMENT);
}

static void Profiles(void) {
  const numsim_format_t e4m3fn = Format("e4m3fn"), bf16 = Format("fp16");
  char message[300];
  uint32_t code = 0;
  uint8_t codes[2];
  int bits = -1;
  size_t i, found = 0;
  const double in[2] = {465.0, 1.0};
  for (i = 0; i < numsim_profile_count(); ++i) {
    found += strcmp(numsim_profile_name(i), "cuda-13") == 0 ? 1 : 0;
  }
  CHECK(found == 1 && numsim_profile_name(numsim_profile_count()) == NULL);
  // CUDA drops the sign of a NaN from float and keeps it from double.
  CHECK_OK(numsim_profile_encode(
      "cuda-13", NUMSIM_FLOAT32, 0xFFC00000u, &e4m3fn, 0, &code, message, sizeof message));
  CHECK(code == 0x7F && message[0] == '\0');
  CHECK_OK(numsim_profile_encode(
      "cuda-13", NUMSIM_FLOAT64, 0xFFF8000000000000u, &e4m3fn, 0, &code, message, sizeof message));
  CHECK(code == 0xFF);
  CHECK_OK(numsim_profile_random_bits("cuda-13", NUMSIM_FLOAT32, &e4m3fn, &bits, NULL, 0));
  CHECK(bits == 0);
  CHECK_OK(numsim_profile_encode_array(
      "cuda-13", NUMSIM_FLOAT64, in, 2, &e4m3fn, NULL, codes, 1, message, sizeof message));
  CHECK(codes[0] == 0x7F && codes[1] == 0x38);
  CHECK(numsim_profile_encode(
            "no-such", NUMSIM_FLOAT32, 0, &e4m3fn, 0, &code, message, sizeof message) ==
        NUMSIM_ERROR_UNKNOWN_PROFILE);
  CHECK(strstr(message, "no-such") != NULL);
  CHECK(numsim_profile_encode(
            "cuda-13", NUMSIM_FLOAT32, 0, &bf16, 0, &code, message, sizeof message) ==
        NUMSIM_ERROR_UNSUPPORTED);
  CHECK(strstr(message, "cuda-13") != NULL);
}

int main(void) {
  Versions();
  Formats();
  Conversions();
  Stochastic();
  Arithmetic();
  Arrays();
  Matrices();
  Products();
  Scales();
  Profiles();
  printf("numsim %s: %d of %d checks hold\n", numsim_version(), g_checks - g_failures, g_checks);
  return g_failures == 0 ? 0 : 1;
}
