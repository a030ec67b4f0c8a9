--- The indexes of the dead-letter desk.
--@include key
--@exports index_key
local function index_key(name)
  return key('desk:' .. name)
end
