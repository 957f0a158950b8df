"""The templates of make_template_goldens.py: expressions, a line each, and whole templates."""

EXPRESSIONS = r"""
1
1.0
1e3
1.5e-7
1e16
1e22
123456789012345.6
0.1 + 0.2
1/3
-0.0
0x1F
0b101
0o17
1_000
'a' 'b'
"it's"
'q"q'
'\n\t\\\x41\u00e9\U0001F600\'\101\q'
true
True
false
none
None
[]
[1, 'a', None, True, 1.0, [2], (3,), {}]
()
(1,)
(1, 2)
1, 2
{}
{'a': 1, 2: 'b', None: [], True: 1.5}
{'a': 1, 'a': 2}
{1: 'a', 1.0: 'b', true: 'c'}
['it\'s', "q\"", "both'\"", '\n\t\\', 'é', '\x00\x7f', '\u200b', '\U0001F600']
1 + 2 * 3 - 4
2 ** 3 ** 2
-2 ** 2
7 // 2
-7 // 2
7 % 3
-7 % 3
7 % -3
7.5 // 2
-7.5 // 2
7.5 % -2
7 / 2
6 / 2
1 / 0
1 // 0
1 % 0
2 ** -1
2 ** 0.5
true + true
true + 1.5
'a' + 'b'
'a' * 3
3 * 'ab'
'a' * -1
[1] + [2]
[1, 2] * 2
(1,) + (2,)
'a' + 1
1 + 'a'
[1] + (2,)
none + 1
-'a'
+true
-true
'a' ~ 1 ~ none ~ 2.0 ~ [1] ~ missing
1 < 2 < 3
1 < 3 < 2
1 == 1.0
1 == true
'a' < 'b'
'a' < 1
[1, 2] < [1, 3]
(1, 2) < (1, 2, 3)
[1] < (1,)
none < 1
none == none
{'a': 1, 'b': 2} == {'b': 2, 'a': 1}
[1, 2] == (1, 2)
'é' > 'z'
1 in [1, 2]
1.0 in [1]
'a' in 'abc'
'' in 'abc'
1 in 'abc'
'a' in {'a': 1}
'b' not in {'a': 1}
'a' in missing
missing in [1]
1 in 5
not 1
not not 'a'
not 1 == 2
1 and 0 or 'x'
'' or 'default'
[] and missing.attribute
true and none
'yes' if n > 5 else 'no'
'yes' if no
('yes' if no) is undefined
1 if no else 2 if no else 3
n if n else missing.x
s[0]
s[-1]
s[20]
s[1:4]
s[:-3]
s[::-1]
s[::2]
s[8:2:-2]
s[-100:100]
s[5:2]
s[::0]
s['a':]
u[0:5]
u[-1]
u[::-1]
u[9:]
u|length
l[0]
l[-1]
l[5]
l[1:]
l[::-1]
l[:-1]
(1, 2, 3)[1:]
l['a']
l.a
l.0
l[true]
l[1.0]
d['a']
d.a
d['zz']
d.zz
d['items']
d[[1]]
d[0:1]
n[0]
n[1:]
nil.x
missing
missing.x
missing['x']
missing[0]
missing[1:]
missing + 1
1 + missing
missing()
missing == missing
missing == 1
missing ~ 'a'
deep.a.b[1].c
deep['a']['b'].0
deep.a.x
deep.a.x.y
range(3)
range(3)|list
range(2, 10, 3)|list
range(5, 0, -2)|list
range(0)|list
range(1, 2, 0)
range(100001)
range(10)[2:5]
range(10)[3]
range(1, 10, 3)
range('a')
dict(a=1, b=2)
dict({'x': 1}, y=2)
dict([('a', 1), ('b', 2)])
namespace(a=1).a
namespace({'z': 2}).z
namespace(a=1).b
s.upper()
s.lower()
s.title()
'they\'re bill\'s'.title()
s.swapcase()
'hELLO wORLD'.capitalize()
'ß'.upper()
'ΑΣ ΑΣΑ'.lower()
u.upper()
'  a b '.strip()
'  a b '.lstrip()
'  a b '.rstrip()
'xxabxx'.strip('x')
'abcab'.strip('ab')
'xxabxx'.lstrip('x') ~ 'xxabxx'.rstrip('x')
' a  b c '.split()
' a  b c '.split(' ')
'a,b,,c'.split(',')
'a,b,,c'.split(',', 1)
' a  b c '.split(none, 1)
'a b c'.split(maxsplit=1)
'a,b,c'.rsplit(',', 1)
' a  b  c '.rsplit(none, 1)
''.split()
''.split(',')
'a'.split('')
'a\nb\r\nc\n\nd'.splitlines()
'a\nb\n'.splitlines(true)
'a-b-c'.partition('-')
'a-b-c'.rpartition('-')
'abc'.partition('x')
'abc'.startswith('ab')
'abc'.startswith(('x', 'a'))
'abc'.startswith('b', 1)
'abc'.endswith('bc')
'abc'.endswith(('x', 'c'))
'abc'.startswith(['a'])
'abcabc'.find('c')
'abcabc'.rfind('c')
'abc'.find('x')
'äbcä'.find('c')
'abcabc'.find('a', 1)
'abc'.index('b')
'abc'.index('x')
'banana'.count('an')
'banana'.count('')
'banana'.replace('a', 'o')
'banana'.replace('a', 'o', 2)
'abc'.replace('', '-')
','.join(['a', 'b'])
','.join([1])
'abc'.removeprefix('a')
'abc'.removesuffix('c')
'abc'.removeprefix('x')
'12'.isdigit()
'²'.isdigit()
'²'.isdecimal()
'½'.isnumeric()
'aé'.isalpha()
'a1'.isalnum()
' \t'.isspace()
''.isdigit()
'AB1'.isupper()
'ab1'.islower()
'Ab Cd'.istitle()
'a_1'.isidentifier()
'é'.isascii()
'ab'.center(5)
'ab'.center(7, '*')
'abc'.center(6, '*')
'ab'.ljust(4) ~ '|'
'ab'.rjust(4, '.')
'-42'.zfill(6)
'a\tb'.expandtabs(4)
'{} {}'.format(1, 'a')
'{0} {1} {0}'.format('a', 'b')
'{a} {b[k]} {c.x}'.format(a=1, b={'k': 2}, c={'x': 3})
'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')
'{:05d} {:+d} {:,} {:x} {:#x} {:b}'.format(42, 42, 1234567, 255, 255, 5)
'{:.2f} {:8.3f} {:e} {:g} {:%}'.format(3.14159, 2.5, 12345.678, 0.0001, 0.25)
'{!r} {!s}'.format('a', 'b')
'{{}} {}'.format(1)
'{} {1}'.format(1, 2)
'{}'.format()
'{:d}'.format('a')
'%s and %s' % ('a', 1)
'%d' % 5
'%d' % 5.7
'%5.2f|%-5s|%05d|%+d' % (3.14159, 'ab', 42, 7)
'%(a)s' % {'a': 1}
'%s' % [1, 2]
'%x %o %e %g %%' % (255, 8, 1234.5, 0.5)
'%r' % 'a'
'%s' % ()
'%s' % (1, 2)
'%d' % 'a'
'%q' % 1
d.get('a')
d.get('z')
d.get('z', 5)
d.keys()
d.values()
d.items()
d.keys()|list
{'a': 1}.items()|list
l.index(2)
l.index(9)
l.count(1)
l.append(4)
l.pop()
d.update({})
l.append is defined
s.__class__
s.nomethod
s.nomethod()
n.x
n()
s|upper
s|lower
'hello wORLD foo-bar (baz'|title
'hello World'|capitalize
'  a '|trim
'xax'|trim('x')
5|trim
s|length
l|count
d|length
none|length
5|length
missing|length
missing|default('x')
missing|d('x')
missing|default
e|default('x')
e|default('x', true)
none|default('x')
none|default('x', boolean=true)
l|join
l|join(', ')
m|join(',', attribute='role')
none|join
'abc'|join('-')
missing|join(',')
l|first
l|last
el|first
el|first|default('none')
'abc'|first
'abc'|last
d|first
d|last
missing|first
5|first
l|sort
l|sort(reverse=true)
['b', 'A', 'c']|sort
['b', 'A', 'c']|sort(case_sensitive=true)
m|sort(attribute='content')|map(attribute='content')|list
m[:2]|sort(attribute='n')|map(attribute='role')|list
m|sort(attribute='n')
[1, 'a']|sort
d|sort
[3, 1]|sort|first
d|dictsort
{'b': 1, 'A': 2}|dictsort
{'b': 1, 'A': 2}|dictsort(true)
{'b': 1, 'a': 2}|dictsort(by='value')
{'b': 1, 'a': 2}|dictsort(reverse=true)
l|dictsort
m|map(attribute='role')|list
m|map(attribute='n', default=0)|list
m|map(attribute='n')|list
['a', 'b']|map('upper')|list
['a', 'b']|map('replace', 'a', 'x')|join(',')
[1, 2]|map('string')|list
['1', 'x']|map('int', default=-1)|list
[1]|map('nofilter')|list
[1]|map()|list
l|map(attribute=0)|list
[[1, 2], [3]]|map('first')|list
[0, 1, '', 'a', none]|select|list
[0, 1, '', 'a', none]|reject|list
[1, 2, 3]|select('odd')|list
[1, 2, 3]|select('>', 1)|list
[1, 2, 3]|reject('equalto', 2)|list
['a', 'b']|select('in', ['a'])|list
m|selectattr('n')|list|length
m|selectattr('n', 'defined')|map(attribute='n')|list
m|selectattr('role', 'equalto', 'user')|list|length
m|selectattr('role', '==', 'user')|map(attribute='content')|join
m|rejectattr('role', 'equalto', 'user')|list
m|rejectattr('n')|list
[1]|select('notest')|list
missing|map('upper')|list
missing|select|list
d|items|list
missing|items|list
l|items|list
l|reverse|list
'abc'|reverse
u|reverse
d|reverse|list
5|reverse
[1, 1, 2, 'a', 'A']|unique|list
['a', 'A']|unique(true)|list
m|unique(attribute='role')|map(attribute='content')|list
[[1]]|unique|list
[1, 2.5]|sum
[]|sum
[[1], [2]]|sum(start=[])
m[:2]|sum(attribute='n')
['a']|sum
l|min
l|max
['b', 'A']|min
['b', 'A']|max(case_sensitive=true)
m[:2]|max(attribute='n')
[]|min
[1, 'a']|max
'42'|int
'42.7'|int
'x'|int
'x'|int(5)
'0x1f'|int(base=16)
'101'|int(0, 2)
' 7 '|int
'1_000'|int
3.9|int
-3.9|int
none|int
true|int
[]|int(3)
'1e3'|int
'3.5'|float
'x'|float
'x'|float(1.5)
2|float
'inf'|float
'nan'|float
2.567|round
2.567|round(1)
2.5|round
3.5|round
-2.5|round
0.125|round(2)
2.675|round(2)
2.567|round(1, 'ceil')
2.567|round(1, 'floor')
-2.567|round(method='floor')
42|round
1234|round(-2)
1250|round(-2)
1234.5|round(-2)
'a'|round
1|round(1, 'up')
-5|abs
-5.5|abs
'a'|abs
'a b a'|replace('a', 'x')
'a b a'|replace('a', 'x', 1)
5|replace(5, 6)
5|string
1.0|string
none|string
missing|string
'a\nb\n\nc'|indent
'a\nb\n\nc'|indent(2, true)
'a\nb\n\nc'|indent(2, blank=true)
'a\nb'|indent('> ')
'a\n'|indent(2) ~ '|'
5|indent
'<a href="x">\'&'|escape
'<'|e ~ '<'
'<'|e + '<'
'<'|safe + '<'
'<' + '<'|e
'<'|e|e
'<'|safe|e
['<'|e]
'<'|forceescape
t|tojson
t|tojson(indent=2)
t|tojson(indent=4)
t|tojson(separators=(',', ':'))
t|tojson(sort_keys=true)
t|tojson(indent=1, separators=(', ', ' : '))
u|tojson
u|tojson(ensure_ascii=true)
'"\\/\n\t\r\b\f\x01\x7f<>&\''|tojson
[]|tojson(indent=2)
{}|tojson(indent=2)
[[], {}]|tojson(indent=2)
1.0|tojson
1e100|tojson
('1e400'|float)|tojson
(1, 2)|tojson
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
{(1, 2): 3}|tojson
missing|tojson
range(3)|tojson
d.items()|tojson
t|tojson(2)
[1, 2, 3, 4, 5]|batch(2)|list
[1, 2, 3, 4, 5]|batch(2, 0)|list
[1, 2, 3, 4, 5]|slice(3)|list
[1, 2, 3, 4, 5]|slice(3, 'x')|list
m|groupby('role')|list
m|groupby('role')|map(attribute='grouper')|list
m|groupby('role')|map(attribute='list')|map('length')|list
m|groupby('n', default=0)|map('first')|list
['A', 'a', 'b']|groupby(0)|map('last')|list
'a b, c-d'|wordcount
'%s-%s'|format(1, 'a')
'%(a)s'|format(a=1)
'abcdefghij klmno'|truncate(12, leeway=0)
'abcdefghij klmno'|truncate(12, true, leeway=0)
'short'|truncate(12)
'abc def ghi jkl'|truncate(9, false, '…', 0)
'a'|center(5)
'a b/ü'|urlencode
{'a b': 'c/d'}|urlencode
d|attr('get')('a')
d|attr('a')
l|list
'abc'|list
d|list
none|list
5|nofilter
s|upper|lower|title
s | replace('o', '0') | length
-1|abs
(-1)|abs
2 + 3|string
n is defined
missing is defined
missing is undefined
missing.x is defined
d.zz is defined
nil is none
nil is not none
missing is none
1 is number
true is number
'1' is number
1 is integer
true is integer
1.0 is integer
1.0 is float
true is boolean
1 is boolean
true is true
1 is true
false is false
's' is string
1 is string
d is mapping
l is mapping
l is sequence
s is sequence
d is sequence
5 is sequence
missing is sequence
l is iterable
5 is iterable
d.keys() is sequence
d.keys() is iterable
range is callable
s is callable
s.upper is callable
3 is odd
4 is even
4 is odd
'a' is even
9 is divisibleby(3)
9 is divisibleby 3
9 is divisibleby 0
'a' is lower
'A' is upper
1 is eq 1
1 is equalto 1
1 is ne 2
1 is lt 2
2 is gt 1
2 is ge 2
1 is sameas 1
none is sameas none
[] is sameas []
1 is in [1, 2]
1 is not in [1, 2]
'a' is in 'abc'
'upper' is filter
'nofilter' is filter
'odd' is test
n is defined and n > 5
n is not defined or yes
not n is defined
n is divisibleby(7) and yes
1 is notest
1 is odd is true
strftime_now('%Y-%m-%d %H:%M:%S')
strftime_now('%d %b %Y')
strftime_now('%A %a %B %j %U %w %W %y %I %p %f %Z|%z|%%')
strftime_now('%c')
strftime_now('%x %X')
strftime_now('%G-W%V-%u')
strftime_now('%-d %e %-m')
strftime_now()
raise_exception('No: ' ~ n)
raise_exception()
(n > 5) ~ ''
[n, x, s][0]
{'a': n}.a
{'a': {'b': 1}}.a.b
(l)[0]
[[1, 2], [3, 4]][1][0]
'abc'[1].upper()
s.split(' ')[0].lower()
s.split()[-1][::-1]
m[0].content.strip()
m[-1]['content']
m|length - 1
m|map(attribute='role')|unique|list|length
(m|first).role
m|first.role
[1, 2, 3][-2:]
l + [4] == [3, 1, 2, 4]
9223372036854775807
9223372036854775807 + 0
2 ** 62
{'a': 1} | length
{'a': 1}
dict(**{'a': 1})
dict(*[[('a', 1)]])
range(*[1, 4])|list
range(1, stop=4)
s.upper(1)
s.replace('a')
l|join(', ', bad=1)
l|first(1)
loop
loop is defined
varargs
"a" "b" 'c'
'a' if 1 == 1.0 else 'b'
[1, 2, 3]|map('string')|join('+')
[3, 2]|sort|join(',') ~ '!'
(1, 2) is sequence
(1, 2)|tojson
'\u00e9'|upper
'a' in ['a'] and 'b' not in ['a']
1 if true else missing.x.y
x|int + n
x * 2
1 - 1.5
10 // 3 * 3 + 10 % 3
2 * 3 ~ 4
2 ~ 3 * 4
1 + 2 ~ 3
-n
+neg
- -n
not yes and no
yes or missing.x
s and l and d.a
"%s" % s
"%s: %d" % (s, n)
nil|default('x') ~ nil
[none, true, 1.50]
1.10
100000000000000000000.0
""
'{{ not }}'
'%}'
""" .strip("\n").split("\n")

TEMPLATES = [
    # Text and comments.
    "", "plain", "a {# comment #} b", "a {#- comment -#} b", "a\n  {# c #}\nb", "{# unclosed", "{{ '{{' }}", "a { b } c {",
    "line\n", "line\n\n", "\n", "\n\n", "a\r\nb\rc\n", "{{ 1 }}\n", "{{ 1 }}\n\n", "}} %} #}",
    # White space.
    "  {% if yes %}\n  a\n  {% endif %}\n  b", "a {%- if yes -%} b {%- endif -%} c", "a\n\n{%- if yes %}\n\nb{% endif %}\n\nc",
    "  {%+ if yes %}a{% endif %}", "a{% if yes +%}\nb{% endif %}", "a {{- 1 -}} b", "  {{ 1 }}\n  {{- 2 }}\n {{ 3 -}}\n x",
    "\t{% set a = 1 %}\t{{ a }}", "x  {% set a = 1 %}\ny", "{% set a = 1 -%}\n\n  y", "  {#- c #}\n  y", "a\n   {%- set b = 1 -%}   \n   c",
    "{% if yes %}\n\n\na{% endif %}", "a  {%- endif %}", "{%-if yes-%}a{%-endif-%}", "{{-'a'-}}", "a\u00a0{%- set b = 1 %}",
    "{% for i in l %}\n  {{ i }}\n{% endfor %}\n", "{% for i in l -%}\n  {{ i }}\n{%- endfor %}\n", "  {{ '' }}  {% if yes %}  x  {% endif %}  ",
    "{% if yes %}a{% endif %}\nb{% if no %}c{% endif %}\nd", "{{ 1 }}  {# c #}\n  {# d #}  \nx", "{% set x = 1 %}{{ x }}{# c +#}\nx",
    "{{ 1 +}}", "{{+ 1 }}", "{{ 1 -}}\n\n", "a\n{%- raw %}\n b {{ c }}\n{% endraw %}\nd",
    "{% raw %}{{ a }}{% b %}{# c #}{% endraw %}", "  {% raw -%}\n  a\n  {%- endraw %}\n  b", "{% raw %}a", "{%- raw -%} a {%- endraw -%} b",
    "{% raw %}\n  a\n  {% endraw %}\nb",
    # Conditions.
    "{% if yes %}a{% else %}b{% endif %}", "{% if no %}a{% elif n == 7 %}b{% elif missing.x %}c{% else %}d{% endif %}",
    "{% if missing %}a{% endif %}.", "{% if no %}{{ 1|nofilter }}{% endif %}ok", "{% if %}a{% endif %}", "{% if yes %}a", "{% endif %}",
    "{% if yes %}{% set a = 1 %}{% endif %}{{ a }}", "{% if 1, %}a{% endif %}", "{% if yes: %}a{% endif %}", "{% if [] %}a{% else %}b{% endif %}",
    # Loops.
    "{% for i in l %}{{ i }},{% endfor %}", "{% for i in el %}x{% else %}none{% endfor %}", "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}", "{% for k, v in d|dictsort %}{{ k }}{{ v }}{% endfor %}", "{% for c in 'añb' %}[{{ c }}]{% endfor %}",
    "{% for i in l if i > 1 %}{{ loop.index }}:{{ i }} {% endfor %}", "{% for i in l if i > 9 %}a{% else %}b{% endfor %}",
    "{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}", "{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for i in l %}{{ loop.cycle('a', 'b') }}{% endfor %}", "{% for i in [1, 1, 2] %}{{ loop.changed(i) }} {% endfor %}", "{% for i in l %}{{ loop.cycle() }}{% endfor %}",
    "{% for i in l %}{% for j in l %}{{ loop.depth }}{{ loop.index }} {% endfor %}{{ loop.index }}|{% endfor %}",
    "{% for i in range(10) %}{% if i == 3 %}{% continue %}{% endif %}{% if i == 6 %}{% break %}{% endif %}{{ i }}{% endfor %}",
    "{% for i in l %}{% break %}{% else %}x{% endfor %}", "{% for i in l %}{% continue %}{% else %}x{% endfor %}", "{% for i in l %}{% if i == 1 %}{% break %}{% endif %}{% else %}x{% endfor %}", "{% for i in l %}{% set loop = 1 %}{% endfor %}", "{% set loop = 1 %}{{ loop }}", "{% macro f(loop) %}{{ loop }}{% endmacro %}{% for i in l %}{{ f(i) }}{% endfor %}", "{% break %}", "{% for i in l %}{% for j in l %}{% break %}{% endfor %}{{ i }}{% endfor %}",
    "{% for i in l %}{% set a = i %}{% endfor %}{{ a }}", "{% set a = 0 %}{% for i in l %}{% set a = a + i %}{{ a }}{% endfor %}{{ a }}",
    "{% set ns = namespace(a=0) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}", "{% for i in 5 %}{% endfor %}", "{% for i in nil %}{% endfor %}",
    "{% for i in missing %}a{% else %}b{% endfor %}", "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}-{{ b }} {% endfor %}", "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
    "{% for a, b in [[1]] %}{% endfor %}", "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "{% for i in l %}{{ i }}{% endfor %}{{ i }}",
    "{% for i in l recursive %}{{ i }}{% endfor %}", "{% for i in [[1, [2]], [3]] recursive %}({% if i is number %}{{ i }}{% else %}{{ loop(i) }}{% endif %}@{{ loop.depth }}){% endfor %}",
    "{% for i in l %}{{ loop(l) }}{% endfor %}", "{% for i in l|reverse %}{{ i }}{{ loop.length }}{{ loop.last }}{% endfor %}", "{% for i in l %}{{ loop }}{% endfor %}",
    "{% for i in 1, 2, 3 %}{{ i }}{% endfor %}", "{% for i in l if loop.index > 1 %}{{ i }}{% endfor %}", "{% for m in m %}{{ m.role }}{% endfor %}{{ m|length }}",
    "{% for i in l %}{% if loop.first %}[{% endif %}{{ i }}{% if not loop.last %}, {% else %}]{% endif %}{% endfor %}", "{% for i in m[1:] %}{{ i.content }}{{ loop.length }}{% endfor %}",
    "{% for i in d.values() %}{{ i }}{% endfor %}", "{% for i in range(3) %}{{ loop.last }}{% endfor %}", "{% for i in l %}a{% endfor", "{% for in l %}{% endfor %}", "{% for i l %}{% endfor %}",
    "{% for i in l %}{% if i == 1 %}{% set f = true %}{% endif %}{{ f is defined }}{% endfor %}", "{% for loop in l %}{{ loop }}{% endfor %}",
    # Assignments.
    "{% set a = 1 %}{{ a }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [1] %}", "{% set (a, b) = (1, 2) %}{{ b }}{{ a }}", "{% set a = 1, 2 %}{{ a }}",
    "{% set a %}x{{ n }}y{% endset %}[{{ a }}]", "{% set a | upper %}abc{% endset %}{{ a }}", "{% set a | replace('a', 'b') | upper %}abc{% endset %}{{ a }}",
    "{% set a %}{% set b = 1 %}{{ b }}{% endset %}{{ a }}{{ b }}", "{% set ns = namespace() %}{% set ns.x = 5 %}{{ ns.x }}{{ ns['x'] }}", "{% set d.x = 5 %}", "{% set missing.x = 5 %}",
    "{% set ns = namespace(l=[1]) %}{% set ns.l = ns.l + [2] %}{{ ns.l }}", "{% set ns = namespace() %}{% set ns.x %}a{% endset %}{{ ns.x }}", "{% set 1 = 2 %}", "{% set true = 2 %}",
    "{% set a = a is defined %}{{ a }}", "{% set n = n + 1 %}{{ n }}", "{% set a = 'x' if yes else 'y' %}{{ a }}", "{% set a == 1 %}", "{% set a = %}", "{% set ns = namespace() %}{{ ns.q is defined }}",
    "{% set x = y = 1 %}", "{% set _a = 1 %}{{ _a }}", "{% set a = [] %}{% set a = a + [1] %}{{ a }}", "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}",
    "{% with a = 1, b = a %}{{ b }}{% endwith %}",
    # Macros.
    "{% macro f() %}x{% endmacro %}{{ f() }}{{ f() }}", "{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }} {{ f(1, 3) }} {{ f(b=5, a=4) }} {{ f() }}",
    "{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{% endmacro %}{{ f(z=2) }}", "{% macro f(a) %}{% endmacro %}{{ f(1, a=2) }}", "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, a=3) }}",
    "{% macro f(a, b=a) %}{{ b }}{% endmacro %}{{ f(1) }}", "{% macro f() %}{{ caller() }}!{% endmacro %}{% call f() %}body{{ n }}{% endcall %}",
    "{% macro f() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) f() %}{{ a }}+{{ b }}{% endcall %}", "{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}", "{% macro f() %}{% if caller %}{{ caller() }}{% else %}no{% endif %}{% endmacro %}{{ f() }}{% call f() %}yes{% endcall %}",
    "{% macro f(n) %}{% if n > 0 %}{{ n }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}", "{% macro f() %}{% set z = 1 %}{{ z }}{% endmacro %}{{ f() }}{{ z }}", "{% set q = 1 %}{% macro f() %}{{ q }}{% endmacro %}{% set q = 2 %}{{ f() }}",
    "{% macro f(x) %}{{ x|upper }}{% endmacro %}{{ ['a', 'b']|map('upper')|join }}{{ f('c')|lower }}{{ f('d') ~ 'e' }}", "{% macro f(a=[]) %}{{ a }}{% endmacro %}{{ f() }}{{ f([1]) }}", "{% macro f(a, b=1, c) %}{% endmacro %}",
    "{% macro f %}{% endmacro %}", "{{ f() }}{% macro f() %}a{% endmacro %}", "{% macro f() %}a{% endmacro %}{{ f.name }}{{ f.arguments }}{{ f.caller }}", "{% macro f() %}  a\n{% endmacro %}[{{ f()|trim }}]", "{% for i in l %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(*[1]) }}{{ f(**{'a': 2}) }}", "{% call n() %}{% endcall %}", "{% call n %}{% endcall %}", "{% macro f() %}{% for i in l %}{{ loop.index }}{% endfor %}{% endmacro %}{{ f() }}",
    "{% macro outer() %}{% macro inner() %}i{% endmacro %}{{ inner() }}{% endmacro %}{{ outer() }}{{ inner is defined }}", "{% macro r(d, p='') %}{% for k, v in d.items() %}{{ p }}{{ k }}\n{% if v is mapping %}{{ r(v, p ~ '  ') }}{% endif %}{% endfor %}{% endmacro %}{{ r(deep) }}",
    # Filter and generation blocks, print, unknown statements.
    "{% filter upper %}abc{{ s }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}abc{% endfilter %}", "{% filter indent(2) %}a\nb{% endfilter %}", "{% generation %}a{{ n }}{% endgeneration %}b", "{% generation %}{% set a = 1 %}{% endgeneration %}{{ a }}",
    "{% for x in m %}{% if x.role == 'assistant' %}{% generation %}{{ x.content }}{% endgeneration %}{% endif %}{% endfor %}", "{% print 1, 2 %}", "{% frob %}", "{% %}", "{% include 'x' %}", "{% endfor %}", "{% if yes %}{% endfor %}", "{% do l.append(1) %}",
    # Errors in syntax.
    "{{ }}", "{{ 1", "{{ 1 }", "{{ (1 }}", "{{ [1 }}", "{{ {1} }}", "{{ 1 + }}", "{{ 'a }}", "{{ a b }}", "{{ a. }}", "{{ a| }}", "{{ a is }}", "{{ f(a=1, 2) }}", "{{ f(a=1, a=2) }}", "{{ ! }}", "{{ a ? b }}", "{{ $x }}", "{{ 1 == }}", "{{ ) }}", "{{ (1] }}", "{{ l[] }}", "{{ l[0 }}",
    "{{ '\\u12' }}", "{{ 'a\\", "{{ if }}", "{{ not }}", "{{ in }}", "{% set a = [1, 2, %}", "{{ [1, 2,] }}{{ (1, 2,) }}{{ {'a': 1,} }}{{ range(3,)|list }}", "{{ {'a' 1} }}", "{{ [,] }}", "{{ 1 if }}", "{{ a.1b }}", "{{ 01 }}", "{{ 1__0 }}", "{{ 1.e3 }}", "{{ 1..real }}", "{{ \u00e9 is defined }}",
    # As templates of models are written.
    "{% for message in m %}{{ '<|' + message['role'] + '|>\\n' + message['content'] | trim + '<|end|>\\n' }}{% endfor %}{% if yes %}{{ '<|assistant|>\\n' }}{% endif %}",
    "{%- for message in m %}\n    {%- if message.role == 'user' %}\n        {{- '[INST] ' + message.content|trim + ' [/INST]' }}\n    {%- elif message.role == 'assistant' %}\n        {{- ' ' + message.content + '</s>' }}\n    {%- else %}\n        {{- raise_exception('Unknown role') }}\n    {%- endif %}\n{%- endfor %}\n",
    "{% if m[0]['role'] == 'system' %}{% set sys = m[0]['content'] %}{% set rest = m[1:] %}{% else %}{% set sys = 'S' %}{% set rest = m %}{% endif %}{{ sys }}{% for x in rest %}{% if (x['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{{ x.content }}{% endfor %}",
    "{% set ns = namespace(found=false, last=m|length - 1) %}{% for x in m[::-1] %}{% set i = (m|length - 1) - loop.index0 %}{% if not ns.found and x.role == 'user' %}{% set ns.found = true %}{% set ns.last = i %}{% endif %}{% endfor %}{{ ns.last }}",
    "{% for tool in [t] %}{{ tool | tojson(indent=4) }}{{ '\\n\\n' }}{% endfor %}", "{% if '</think>' in 'a</think>b' %}{{ 'a</think>b'.split('</think>')[-1].lstrip('\\n') }}{% endif %}",
    "{%- macro p(x) -%}{%- for k, v in x | items -%}{%- if k != 'type' -%}<{{ k }}>{{ v if v is string else v | tojson }}</{{ k }}>{%- endif -%}{%- endfor -%}{%- endmacro -%}{{ p(t.parameters) }}",
]
