// Values of options: reads, writes and checks them.
#pragma once

#include "core/base/text.hpp"
#include "core/format/parameters.hpp"

namespace streamfilter {

// Parses a size as PostgreSQL writes it: bytes, or B, kB, MB, GB, TB.
bool parse_size(const char* text, std::uint64_t& bytes) noexcept;

// Prints a size in the largest unit that divides it. `size` of at least 32 is enough.
void print_size(std::uint64_t bytes, char* buffer, std::size_t size) noexcept;

bool parse_real(const char* text, double& value) noexcept;

// A whole number; 1e6 and 1000000.0 are read, too. Plain digits are exact up to 2^64 - 1.
bool parse_integer(const char* text, std::uint64_t& value) noexcept;

// Sets a problem with an option's value, in the same words for all. Returns false.
bool bad_value(Problem& problem, Error error, const char* option, const char* value) noexcept;
bool bad_range(Problem& problem, const char* option, const char* value, double low,
               double high) noexcept;

// Reads a whole number from low to high, or one of `choices` (which end with nullptr) as its index.
bool read_whole_number(const char* option, const char* value, double low, double high,
                       std::uint64_t& result, Problem& problem) noexcept;
bool read_choice(const char* option, const char* value, WordList choices, std::uint64_t& result,
                 Problem& problem) noexcept;

// Sets an option of the definition's kind. Errors: syntax, out_of_range.
bool set_kind_option(Definition& definition, const OptionSpec& option, const char* value,
                     Problem& problem) noexcept;

// Do the parameters hold a value that set_kind_option could store?
bool option_in_range(const Parameters& parameters, const OptionSpec& option) noexcept;

// Does an option of type `span` hold a number of rows, not a time?
inline bool counts_rows(const Parameters& parameters, const OptionSpec& option) noexcept {
  return parameters.integer(option.word + 1) != 0;
}

// Number of words of the option's value.
unsigned words_of(const Parameters& parameters, const OptionSpec& option) noexcept;

// Writes the value of an option of a kind as set_kind_option reads it.
void write_option(TextWriter& out, const Parameters& parameters, const OptionSpec& option) noexcept;

// The same into a buffer. Returns the length.
std::size_t print_option(const Parameters& parameters, const OptionSpec& option, char* buffer,
                         std::size_t size) noexcept;

// Have both the same value of an option of their kind?
bool is_same_option(const OptionSpec& option, const Parameters& a, const Parameters& b) noexcept;

}  // namespace streamfilter
