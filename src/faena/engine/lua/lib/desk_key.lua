--- The shelves of the dead-letter desk.
--@include key
local function shelf(name)
  return key('desk:' .. name)
end
