--- The specs of jobs that are about to be claimed.
--@include keys
--@exports CLAIMED_BYTES, specs_of, look_at_specs, forget_specs
--@state looked_at = false   -- id -> spec, of the first that limits were asked about
--@state looked_bytes = 0
local CLAIMED_BYTES = 8 * 1024 * 1024   -- so that a slow line can carry them

--- Some specs out of those that were looked at, or nil where one was not.
local function known_specs(ids, first, last)
  local known, specs = context.looked_at, {}
  for i = first, last do
    local spec = known[ids[i]]
    if spec == nil then
      return nil
    end
    specs[i - first + 1] = spec
  end
  return specs
end

--- The specs of the first jobs, as many as fit into a claim; of one job at least.
local function specs_of(ids)
  local at_once = 250   -- specs read, for the same bound on the server's side
  local specs, number, bytes = {}, 0, 0
  for first = 1, #ids, at_once do
    local last = math.min(first + at_once - 1, #ids)
    local found = context.looked_at and known_specs(ids, first, last)
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

--- The same for a limit that is asked before the claim: as many as a claim may have are not read again.
local function look_at_specs(ids)
  local specs, known, bytes = specs_of(ids), context.looked_at or {}, context.looked_bytes
  for i, spec in ipairs(specs) do
    if known[ids[i]] == nil and bytes <= CLAIMED_BYTES then
      known[ids[i]], bytes = spec, bytes + #(spec or '')
    end
  end
  context.looked_at, context.looked_bytes = known, bytes
  return specs
end

--- The claim is complete: a context outlives its call.
local function forget_specs()
  context.looked_at, context.looked_bytes = false, 0
end
