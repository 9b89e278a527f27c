-- Counts, in one step, the requests in the source, the processing list and the sink, and the
-- requests that consumers hold.
-- KEYS: source, processing list, sink, consumers, held requests of each consumer that the caller
-- knows
-- ARGV: kind of sink, the consumers that the caller knows, in the order of their keys
-- Answers the count, or the names of all consumers if the caller knows other consumers.
-- Never counts requests at two moments, and changes nothing.
local source, processing, sink, consumers = unpack(KEYS, 1, 4)
local kind = ARGV[1]

local names = redis.call('HKEYS', consumers)
local known = {}
for index = 2, #ARGV do
    known[ARGV[index]] = true
end
local is_same = #names == #ARGV - 1
for _, name in ipairs(names) do
    is_same = is_same and known[name]
end
if not is_same then
    return names
end
local total = redis.call('LLEN', source) + redis.call('LLEN', processing)
    + redis.call(kind == 'zset' and 'ZCARD' or 'LLEN', sink)
for index = 5, #KEYS do
    total = total + redis.call('HLEN', KEYS[index])
end
return total
