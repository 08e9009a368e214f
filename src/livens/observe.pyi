from livens.analysis.observables import *
