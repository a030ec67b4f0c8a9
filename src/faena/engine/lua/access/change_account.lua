--- Make, change or remove a user or a token of the dashboard, if it still is as its author has seen it.
-- states   none
-- keys     accounts hash
--@args     name, expected?, account?
--          as it was, '' if there was none · as it shall be, '' to remove it: packed, with role, tenant, is_off and is_invited
-- returns  OK
-- refuses  CHANGED: another one has changed it · LAST_OWNER: no owner would be left who can sign in
--@flags allow-oom
--@include keys, check_arguments, safe_read
check(account == '' or unpacked(account), 'account')
local accounts = key('accounts')
local kept = call('HGET', accounts, name) or ''
if kept == account then
  return 'OK'
elseif kept ~= expected then
  return 'CHANGED'
end

local function is_owner(packed)
  local one = unpacked(packed)
  return one ~= nil and one.role == 'owner' and not one.is_off and not one.is_invited
end

local function others_own()
  local flat = call('HGETALL', accounts)
  for i = 1, #flat, 2 do
    if flat[i] ~= name and flat[i]:sub(1, 5) == 'user:' and is_owner(flat[i + 1]) then
      return true
    end
  end
  return false
end

local is_user = name:sub(1, 5) == 'user:'
if is_user and kept ~= '' and is_owner(kept) and (account == '' or not is_owner(account)) and not others_own() then
  return 'LAST_OWNER'
end
if account == '' then
  call('HDEL', accounts, name)
else
  call('HSET', accounts, name, account)
end
return 'OK'
