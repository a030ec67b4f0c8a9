--- The shelves of the dead-letter desk.
--@include key
--@exports shelf
local function shelf(name)
  return key('desk:' .. name)
end
