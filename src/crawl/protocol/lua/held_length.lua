-- Answers the number of requests that consumers hold.
-- KEYS: held requests of each consumer
local total = 0
for _, held in ipairs(KEYS) do
    total = total + #redis.call('HKEYS', held)
end
return total
