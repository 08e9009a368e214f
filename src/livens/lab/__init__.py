"""The lab: a page in the browser where one chooses a problem, a scheme and numbers, and sees them move.

``livens lab`` serves it to this machine alone. What is asked for is checked in `asked`, computed by another process
(`worker`, hired and watched over by `jobs`), and served by `server`; `gallery` has a moving thumbnail of each problem.
"""
