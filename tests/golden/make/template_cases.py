# SPDX-License-Identifier: Apache-2.0
"""The templates of make_template_goldens.py: expressions, each a line of a file, and whole
templates."""
import pathlib

EXPRESSIONS = (pathlib.Path(__file__).with_name("template_expressions.txt")
               .read_text(encoding="utf-8").removesuffix("\n").split("\n"))

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
    # In the style of models' templates.
    "{% for message in m %}{{ '<|' + message['role'] + '|>\\n' + message['content'] | trim + '<|end|>\\n' }}{% endfor %}{% if yes %}{{ '<|assistant|>\\n' }}{% endif %}",
    "{%- for message in m %}\n    {%- if message.role == 'user' %}\n        {{- '[INST] ' + message.content|trim + ' [/INST]' }}\n    {%- elif message.role == 'assistant' %}\n        {{- ' ' + message.content + '</s>' }}\n    {%- else %}\n        {{- raise_exception('Unknown role') }}\n    {%- endif %}\n{%- endfor %}\n",
    "{% if m[0]['role'] == 'system' %}{% set sys = m[0]['content'] %}{% set rest = m[1:] %}{% else %}{% set sys = 'S' %}{% set rest = m %}{% endif %}{{ sys }}{% for x in rest %}{% if (x['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{{ x.content }}{% endfor %}",
    "{% set ns = namespace(found=false, last=m|length - 1) %}{% for x in m[::-1] %}{% set i = (m|length - 1) - loop.index0 %}{% if not ns.found and x.role == 'user' %}{% set ns.found = true %}{% set ns.last = i %}{% endif %}{% endfor %}{{ ns.last }}",
    "{% for tool in [t] %}{{ tool | tojson(indent=4) }}{{ '\\n\\n' }}{% endfor %}", "{% if '</think>' in 'a</think>b' %}{{ 'a</think>b'.split('</think>')[-1].lstrip('\\n') }}{% endif %}",
    "{%- macro p(x) -%}{%- for k, v in x | items -%}{%- if k != 'type' -%}<{{ k }}>{{ v if v is string else v | tojson }}</{{ k }}>{%- endif -%}{%- endfor -%}{%- endmacro -%}{{ p(t.parameters) }}",
]
