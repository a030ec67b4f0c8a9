--- The names of a table, in any order.
--@exports names_in
local function names_in(map)
  local names, number = {}, 0
  for name in pairs(map) do
    number = number + 1
    names[number] = name
  end
  return names
end
