// node build.mjs <folder of the contract> <component to write>
