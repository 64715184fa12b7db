// Marks the small functions that host and device code share: what a test has checked on the processor is what the
// card runs.
#pragma once
#ifdef __CUDACC__
#define RECTO_BOTH __host__ __device__
#else
#define RECTO_BOTH
#endif
