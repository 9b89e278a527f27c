-- Sets all rejects aside, if none are aside yet.
-- KEYS: aside, rejected
-- Answers how many are aside; -1 if some were before, and nothing was done.
local aside, rejected = unpack(KEYS)

local refusal = type_refusal(aside, 'list')
    or type_refusal(rejected, 'list')
    or permission_refusal('RENAME', rejected, aside)
if refusal then
    return refusal
end
if redis.call('EXISTS', aside) == 1 then
    return -1
end
if redis.call('EXISTS', rejected) == 0 then
    return 0
end
redis.call('RENAME', rejected, aside)
return redis.call('LLEN', aside)
