-- Sets all rejects aside by a rename of their list, if no rejects are aside yet.
-- KEYS: aside, rejected
-- Answers the number of rejects that are aside now; -1 if the script did nothing, because rejects
--         were already aside.
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
