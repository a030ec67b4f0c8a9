--- The specs of jobs that are about to be claimed.
--@include keys
--@exports CLAIMED_BYTES, specs_of, new_look, look_at_specs
local CLAIMED_BYTES = 8 * 1024 * 1024   -- so that a slow line can carry them

--- Some specs out of those that were looked at, or nil where one was not.
local function known_specs(known, ids, first, last)
  local specs = {}
  for i = first, last do
    local spec = known[ids[i]]
    if spec == nil then
      return nil
    end
    specs[i - first + 1] = spec
  end
  return specs
end

--- The specs of the first jobs, as many as fit into a claim; of one job at least. `look` may have some of them.
local function specs_of(ids, look)
  local at_once = 250   -- specs read, for the same bound on the server's side
  local specs, number, bytes = {}, 0, 0
  for first = 1, #ids, at_once do
    local last = math.min(first + at_once - 1, #ids)
    local found = look and known_specs(look.specs, ids, first, last)
    for _, spec in ipairs(found or call('HMGET', key('specs'), unpack(ids, first, last))) do
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

--- What the limits of a claim have looked at: specs by id.
local function new_look()
  return { specs = {}, bytes = 0 }
end

--- The same for a limit that is asked before the claim: as many as a claim may have are not read again.
local function look_at_specs(ids, look)
  local specs, known = specs_of(ids, look), look.specs
  for i, spec in ipairs(specs) do
    if known[ids[i]] == nil and look.bytes <= CLAIMED_BYTES then
      known[ids[i]], look.bytes = spec, look.bytes + #(spec or '')
    end
  end
  return specs
end
