// Writes the inputs that fuzzing starts from: write_seeds DIRECTORY, a folder for each target in
// it.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "fuzz/seeds.hpp"

int main(int count, char** arguments) {
  if (count != 2) return EXIT_FAILURE;
  const std::filesystem::path directory = arguments[1];
  fuzz::make_seeds([&](const fuzz::Seed& seed) {
    std::filesystem::create_directories(directory / seed.target);
    std::ofstream file(directory / seed.target / seed.name, std::ios::binary);
    if (!file.write(seed.bytes.data(), static_cast<std::streamsize>(seed.bytes.size())))
      std::exit(EXIT_FAILURE);
  });
}
