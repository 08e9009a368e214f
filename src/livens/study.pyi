from livens.analysis.study import *
