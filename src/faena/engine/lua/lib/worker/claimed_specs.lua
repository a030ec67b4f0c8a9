--- The specs of jobs that are about to be claimed.
--@include keys
--@exports CLAIMED_BYTES, specs_of
local CLAIMED_BYTES = 8 * 1024 * 1024   -- so that a slow line can carry them

--- The specs of the first jobs, as many as fit into a claim; of one job at least.
local function specs_of(ids)
  local at_once = 250   -- specs read, for the same bound on the server's side
  local specs, number, bytes = {}, 0, 0
  for first = 1, #ids, at_once do
    local last = math.min(first + at_once - 1, #ids)
    for _, spec in ipairs(call('HMGET', key('specs'), unpack(ids, first, last))) do
      bytes = bytes + #(spec or '')
      if bytes > CLAIMED_BYTES and number > 0 then
        return specs
      end
      number = number + 1
      specs[number] = spec
    end
  end
  return specs
end
