-- Judges items by bits that lie anywhere in Redis strings. The extras are for each item where its
-- bits are, WIDTH of them, as Redis takes offsets: to make text of a number costs it more than to
-- look the bit up. `places` has for each of those bits the number of its string (2 bytes, big
-- endian, from 1; 0 where the item goes on unchecked).

local FORMAT, STRIDE = '>' .. string.rep('I2', WIDTH), 2 * WIDTH

local function filter_refusal(keys)
    for _, key in ipairs(keys) do
        local refusal = permission_refusal('BITFIELD', key, 'SET', 'u1', 0, 1)
        if refusal then
            return refusal
        end
    end
end

-- The strings of each item's bits, and which of all those bits are set, by string. BITFIELD_RO
-- refuses keys of another type.
local function read(keys, places, count, first_extra)
    local strings_of, asked, is_set = {}, {}, {}
    for number = 1, #keys do
        asked[number], is_set[number] = {}, {}
    end
    local bit = first_extra
    for item = 1, count do
        local strings = {struct.unpack(FORMAT, places, (item - 1) * STRIDE + 1)}
        strings_of[item] = strings
        if strings[1] > 0 then
            for index = 1, WIDTH do
                local ask = asked[strings[index]]
                local so_far = #ask
                ask[so_far + 1], ask[so_far + 2], ask[so_far + 3] = 'GET', 'u1', ARGV[bit + index - 1]
            end
        end
        bit = bit + WIDTH
    end
    local most = CHUNK - CHUNK % 3
    for number = 1, #keys do
        local ask, set = asked[number], is_set[number]
        for from = 1, #ask, most do
            local to = math.min(from + most - 1, #ask)
            local values = redis.call('BITFIELD_RO', keys[number], unpack(ask, from, to))
            for index = 1, #values do
                if values[index] == 1 then
                    set[ask[from + 3 * index - 1]] = true
                end
            end
        end
    end
    return strings_of, is_set
end

-- Judges the arguments from `first` to `last`. Answers those that go on, how many of them are
-- unseen, and what remembers those. Each item is judged as if those before it had been remembered
-- already.
local function judge(keys, places, first, last, first_extra)
    local strings_of, is_set = read(keys, places, last - first + 1, first_extra)
    local onward, writes, unseen = {}, {}, 0
    for number = 1, #keys do
        writes[number] = {}
    end
    local extra = first_extra
    for item = 1, last - first + 1 do
        local strings = strings_of[item]
        local is_filtered, is_unseen = strings[1] > 0, false
        if is_filtered then
            for index = 1, WIDTH do
                local number, bit = strings[index], ARGV[extra + index - 1]
                local set = is_set[number]
                if not set[bit] then
                    set[bit], is_unseen = true, true
                    local write = writes[number]
                    local count = #write
                    write[count + 1], write[count + 2] = 'SET', 'u1'
                    write[count + 3], write[count + 4] = bit, '1'
                end
            end
        end
        extra = extra + WIDTH
        if is_unseen then
            unseen = unseen + 1
        end
        if is_unseen or not is_filtered then
            onward[#onward + 1] = ARGV[first + item - 1]
        end
    end
    return onward, unseen, function()
        local most = CHUNK - CHUNK % 4
        for number = 1, #keys do
            local write = writes[number]
            for from = 1, #write, most do
                local to = math.min(from + most - 1, #write)
                redis.call('BITFIELD', keys[number], unpack(write, from, to))
            end
        end
    end
end
