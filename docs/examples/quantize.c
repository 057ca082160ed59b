// Quantises two matrices row by row to e4m3fn, with stochastic rounding of 16 bits, and multiplies
// them under three accumulation modes. quantize.cc is the same program in C++ and prints the same.
//
//   cc quantize.c $(pkg-config --cflags --libs numsim)
#include <numsim.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS_X 2
#define ROWS_W 3
#define COLS 64

// A matrix with its codes and scales.
typedef struct {
  const char* name;
  size_t rows;
  float values[ROWS_W * COLS];
  uint8_t codes[ROWS_W * COLS];
  float scales[ROWS_W];
} matrix_t;

static const numsim_scale_layout_t by_row = {.granularity = NUMSIM_SCALE_ROW};

static void check(numsim_status_t status) {
  if (status == NUMSIM_OK) return;
  fprintf(stderr, "%s\n", numsim_status_text(status));
  exit(1);
}

// Numbers between -50/16 and 50/16, times 8^r in row r, so that each row needs its own scale.
static void fill(matrix_t* m, size_t step) {
  float factor = 1.0f / 16;
  for (size_t r = 0; r < m->rows; ++r, factor *= 8) {
    for (size_t c = 0; c < COLS; ++c) {
      const size_t i = r * COLS + c;
      m->values[i] = ((float)((i + 1) * step % 101) - 50) * factor;
    }
  }
}

// From values to scales and codes. The scales map the largest |x| of a row to the largest value of
// the format. Each matrix takes its random bits from its own stream.
static void quantize(matrix_t* m, const numsim_format_t* format, uint64_t stream) {
  const numsim_random_t random = {.seed = 1, .stream = stream};
  numsim_rounding_t rounding = numsim_rounding_default();
  float absmax[ROWS_W], inv_scales[ROWS_W];
  rounding.mode = NUMSIM_ROUND_STOCHASTIC;
  rounding.random_bits = 16;
  rounding.overflow = NUMSIM_OVERFLOW_SATURATE;
  check(numsim_absmax(m->values, m->rows, COLS, &by_row, absmax));
  check(
      numsim_make_scales(format, absmax, m->rows, NUMSIM_SCALE_RULE_ABSMAX, m->scales, inv_scales));
  check(numsim_quantize(
      m->values, m->rows, COLS, &by_row, inv_scales, format, &rounding, &random, 0, m->codes, 1));
  printf("scales of %s:", m->name);
  for (size_t r = 0; r < m->rows; ++r) printf(" %.9g", m->scales[r]);
  printf("\n");
}

static numsim_factor_t operand(const matrix_t* m, const numsim_format_t* format) {
  const numsim_factor_t made = {
      .format = *format, .codes = m->codes, .code_bytes = 1, .scales = m->scales, .layout = by_row};
  return made;
}

int main(void) {
  static const char* const modes[3] = {"exact", "fp32", "hopper-fp8"};
  static matrix_t x = {.name = "x", .rows = ROWS_X}, w = {.name = "w", .rows = ROWS_W};
  float dequantized[ROWS_X * COLS], product[ROWS_X * ROWS_W];
  char message[200];
  numsim_format_t format;
  if (numsim_format_by_name("e4m3fn", &format, message, sizeof message) != NUMSIM_OK) {
    fprintf(stderr, "%s\n", message);
    return 1;
  }
  fill(&x, 37);
  fill(&w, 59);
  quantize(&x, &format, 0);
  quantize(&w, &format, 1);

  // And back: each code times its scale.
  check(numsim_dequantize(&format, x.codes, 1, x.rows, COLS, &by_row, x.scales, dequantized));
  for (size_t i = 0; i < 4; ++i) {
    printf("x[%zu] = %.9g, code %02X, dequantised %.9g\n",
           i,
           x.values[i],
           (unsigned)x.codes[i],
           dequantized[i]);
  }

  // X W^T, 2 x 3, from the codes and scales.
  const numsim_factor_t a = operand(&x, &format), b = operand(&w, &format);
  for (int m = 0; m < 3; ++m) {
    if (numsim_gemm(&a, &b, ROWS_X, ROWS_W, COLS, modes[m], product, message, sizeof message) !=
        NUMSIM_OK) {
      fprintf(stderr, "%s\n", message);
      return 1;
    }
    printf("%s:", modes[m]);
    for (int i = 0; i < ROWS_X * ROWS_W; ++i) printf(" %.9g", product[i]);
    printf("\n");
  }
  return 0;
}
