-- Gives a filter that was put together aside the names by which it counts; answers 0 and changes
-- nothing where something has one of them.
-- KEYS: for each string what it is called aside, and what it is to be called; then the definition
-- ARGV: fields and values of the definition
for at = 2, #KEYS - 1, 2 do
    if redis.call('EXISTS', KEYS[at]) == 1 then
        return 0
    end
end
if redis.call('EXISTS', KEYS[#KEYS]) == 1 then
    return 0
end
for at = 1, #KEYS - 1, 2 do
    if redis.call('EXISTS', KEYS[at]) == 1 then
        redis.call('PERSIST', KEYS[at])
        redis.call('RENAME', KEYS[at], KEYS[at + 1])
    end
end
redis.call('HSET', KEYS[#KEYS], unpack(ARGV))
return 1
